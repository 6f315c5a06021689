// What glTF-Transform reads of glTF files: corners of triangles where they stand, their texture coordinates and colors.
// For tests/scenes/compare_gltf.py, which names the files on standard input, one a line, and a folder for the results.
import { createInterface } from 'node:readline';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

const [folder, modules] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/x.js`));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const { NodeIO } = await load('@gltf-transform/core');
const { ALL_EXTENSIONS } = await load('@gltf-transform/extensions');

const times = (m, [x, y, z], w = 1) =>
    [0, 1, 2].map((row) => m[row] * x + m[4 + row] * y + m[8 + row] * z + m[12 + row] * w);

function multiply(a, b) {
    const found = new Array(16).fill(0);
    for (let column = 0; column < 4; column++)
        for (let row = 0; row < 4; row++)
            for (let k = 0; k < 4; k++) found[4 * column + row] += a[4 * k + row] * b[4 * column + k];
    return found;
}

function compose([tx, ty, tz], rotation, [sx, sy, sz]) {
    const [x, y, z, w] = rotation.map((value) => value / Math.hypot(...rotation)); // of bytes its length is not 1
    // the columns are the turned axes: q v q*, for each unit vector v
    const turned = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(([a, b, c]) => {
        const [p, q, r] = [y * c - z * b, z * a - x * c, x * b - y * a];
        return [a + 2 * (w * p + y * r - z * q), b + 2 * (w * q + z * p - x * r), c + 2 * (w * r + x * q - y * p)];
    });
    return [...turned[0].map((v) => v * sx), 0, ...turned[1].map((v) => v * sy), 0, ...turned[2].map((v) => v * sz), 0,
        tx, ty, tz, 1];
}

function element(accessor, place) {
    return accessor.getElement(place, []);
}

function morphed(primitive, name, place, weights) {
    const found = element(primitive.getAttribute(name), place);
    primitive.listTargets().forEach((target, number) => {
        const moved = target.getAttribute(name);
        if (moved && weights[number])
            element(moved, place).forEach((value, axis) => (found[axis] += weights[number] * value));
    });
    return found;
}

function triangles(primitive, count) {
    const indices = primitive.getIndices();
    const at = (place) => (indices ? indices.getScalar(place) : place);
    const length = indices ? indices.getCount() : count;
    const found = [];
    if (primitive.getMode() === 4) for (let i = 0; i + 2 < length; i += 3) found.push([at(i), at(i + 1), at(i + 2)]);
    if (primitive.getMode() === 5)
        for (let i = 0; i + 2 < length; i++)
            found.push(i % 2 ? [at(i), at(i + 2), at(i + 1)] : [at(i), at(i + 1), at(i + 2)]);
    if (primitive.getMode() === 6) for (let i = 1; i + 1 < length; i++) found.push([at(i), at(i + 1), at(0)]);
    return found;
}

function surface(primitive) {
    const material = primitive.getMaterial();
    if (!material) return { factor: [1, 1, 1], texture: null };
    const glossy = material.getExtension('KHR_materials_pbrSpecularGlossiness');
    const texture = glossy ? glossy.getDiffuseTexture() : material.getBaseColorTexture();
    const info = glossy ? glossy.getDiffuseTextureInfo() : material.getBaseColorTextureInfo();
    const factor = (glossy ? glossy.getDiffuseFactor() : material.getBaseColorFactor()).slice(0, 3);
    if (!texture || !info) return { factor, texture: null };
    const moved = info.getExtension('KHR_texture_transform');
    const texcoord = moved && moved.getTexCoord() !== null ? moved.getTexCoord() : info.getTexCoord();
    const [offset, scale, angle] = moved
        ? [moved.getOffset(), moved.getScale(), moved.getRotation()]
        : [[0, 0], [1, 1], 0];
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    const place = ([u, v]) => [
        offset[0] + c * (u * scale[0]) + s * (v * scale[1]),
        1 - (offset[1] - s * (u * scale[0]) + c * (v * scale[1])),
    ];
    return { factor, texture, texcoord, place, wrap: [info.getWrapS(), info.getWrapT()] };
}

function collect(document) {
    const root = document.getRoot();
    const scene = root.getDefaultScene() || root.listScenes()[0];
    const rows = [], wraps = [];
    const visit = (node) => {
        const mesh = node.getMesh();
        const skin = node.getSkin();
        const instanced = node.getExtension('EXT_mesh_gpu_instancing');
        let matrices = [node.getWorldMatrix()];
        if (instanced) {
            const names = ['TRANSLATION', 'ROTATION', 'SCALE'].map((name) => instanced.getAttribute(name));
            const usual = [[0, 0, 0], [0, 0, 0, 1], [1, 1, 1]];
            const some = names.find((one) => one);
            matrices = Array.from({ length: some ? some.getCount() : 1 }, (_, i) =>
                multiply(matrices[0], compose(...names.map((one, k) => (one ? element(one, i) : usual[k])))));
        }
        let joints = null;
        if (skin) {
            const inverse = skin.getInverseBindMatrices();
            joints = skin.listJoints().map((joint, place) =>
                inverse ? multiply(joint.getWorldMatrix(), element(inverse, place)) : joint.getWorldMatrix());
        }
        for (const primitive of mesh ? mesh.listPrimitives() : []) {
            const position = primitive.getAttribute('POSITION');
            if (!position || primitive.getMode() < 4) continue;
            const weights = node.getWeights().length ? node.getWeights() : mesh.getWeights();
            const look = surface(primitive);
            const named = look.texture && primitive.getAttribute(`TEXCOORD_${look.texcoord}`);
            const painted = primitive.getAttribute('COLOR_0');
            const whole = triangles(primitive, position.getCount());
            for (const matrix of joints ? [null] : matrices)
                for (const triangle of whole) {
                    for (const place of triangle) {
                        let at = morphed(primitive, 'POSITION', place, weights);
                        if (joints) {
                            let sum = [0, 0, 0], total = 0;
                            for (let set = 0; primitive.getAttribute(`JOINTS_${set}`); set++) {
                                const which = element(primitive.getAttribute(`JOINTS_${set}`), place);
                                const share = element(primitive.getAttribute(`WEIGHTS_${set}`), place);
                                which.forEach((joint, k) => {
                                    if (share[k])
                                        sum = sum.map((v, axis) => v + share[k] * times(joints[joint], at)[axis]);
                                    total += share[k];
                                });
                            }
                            at = total ? sum.map((value) => value / total) : at;
                        } else at = times(matrix, at);
                        const uv = named
                            ? look.place(morphed(primitive, `TEXCOORD_${look.texcoord}`, place, weights))
                            : [NaN, NaN];
                        const color = painted ? element(painted, place).slice(0, 3) : [1, 1, 1];
                        rows.push(...at, ...uv, ...color, ...look.factor);
                    }
                    wraps.push(...(named ? look.wrap : [0, 0]));
                }
        }
        node.listChildren().forEach(visit);
    };
    (scene ? scene.listChildren() : []).forEach(visit);
    return { rows, wraps };
}

const io = new NodeIO().registerExtensions(ALL_EXTENSIONS);
let number = 0;
for await (const path of createInterface({ input: process.stdin })) {
    const name = `${folder}/${number++}`;
    try {
        const { rows, wraps } = collect(await io.read(path));
        writeFileSync(`${name}.rows`, Buffer.from(Float64Array.from(rows).buffer));
        writeFileSync(`${name}.wraps`, Buffer.from(Int32Array.from(wraps).buffer));
    } catch (error) {
        writeFileSync(`${name}.error`, String(error && error.message).slice(0, 300));
    }
}
