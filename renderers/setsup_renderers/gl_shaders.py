"""GLSL of the gl renderer: one program for each combination of what a surface has and what lights a scene.

The programs work in the camera's frame. Whatever is the same all over a triangle is worked out at its corners and
carried flat: a plane ``n · X = w`` gives the depth of the ray through a pixel's centre as ``w / (n · ray)``, exactly,
where interpolation between corners, which are snapped to fractions of a pixel, would be off on steep surfaces.

``tags`` are instance, triangle, and the colour of the material as half floats: where triangles are as small as pixels,
software drivers take a tenth of their time over each further variable. Loops over lights have constant lengths: those
drivers take far longer over loops of unknown length.
"""

from dataclasses import dataclass

from setsup.scenes.meshes.mesh import Wrap
from setsup.scenes.meshes.wrapping import WRAPS

__all__ = ["RESOLVE", "Kind", "sources"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a program is for.

    Attributes
    ----------
    textured, smooth, painted : bool
        Surfaces have a texture, normals of corners, colours of corners.
    masked : bool
        Surfaces have holes, which a second texture tells.
    wrap : 2 of "repeat", "clamp", "mirror"
        How both go on outside 0 … 1.
    coincident : bool
        Some surfaces are hidden by others in their places, which the fourth of the colours in ``tags`` tells.
    directionals, lamps, spots : int
        How many lights there are; spots are lamps with an axis, and counted by themselves.
    output : str
        ``"all"``, ``"geometry"`` or ``"light"`` (for supersampling).

    """

    textured: bool
    smooth: bool
    painted: bool
    masked: bool
    wrap: tuple[Wrap, Wrap]
    coincident: bool
    directionals: int
    lamps: int
    spots: int
    output: str = "all"


# x^(1/2.4) is q^(5/3) of the fourth root q of x. The polynomial is the best of degree 6 between the fourth root of
# 0.0031308 and 1: off by 1.4e-6, 0.0004 of a byte. Software drivers take a third longer over pow().
_ENCODE = """
uint bytes(vec3 light, float alpha) {
    vec3 v = clamp(light, 0.0, 1.0);
    vec3 q = sqrt(sqrt(v));
    vec3 power = (((((0.06465204 * q - 0.30181584) * q + 0.6229269) * q - 0.80849019) * q + 1.29471178) * q
        + 0.13232622) * q - 0.00430958;
    vec3 encoded = mix(1.055 * power - 0.055, 12.92 * v, lessThanEqual(v, vec3(0.0031308)));
    uvec4 found = uvec4(255.0 * vec4(encoded, alpha) + 0.5);
    return found.r | found.g << 8 | found.b << 16 | found.a << 24;
}
"""

_VERTEX = """
in vec3 position;
in vec3 normal;
in uvec4 tag;
uniform mat4 to_clip;
uniform mat4x3 to_camera;
uniform mat3 to_ray;
flat out vec3 plane_normal;
flat out vec3 plane;
flat out uvec4 tags;
#ifdef COINCIDENT
flat out uint hidden;
#endif
#ifdef MAPPED
in vec2 uv;
out vec2 at;
#endif
#ifdef SMOOTH
in vec3 corner_normal;
out vec3 smoothed;
#endif
#ifdef PAINTED
in vec3 paint;
out vec3 painted;
#endif
void main() {
    vec4 here = vec4(position, 1.0);
    gl_Position = to_clip * here;
    vec3 n = mat3(to_camera) * normal;
    float w = dot(n, to_camera * here);
#ifdef COINCIDENT
    hidden = uint(unpackHalf2x16(tag.w).y) & (w > 0.0 ? 2u : 1u);
#endif
    if (w > 0.0) {
        n = -n;
        w = -w;
    }
    plane_normal = n;
    plane = n * to_ray / w;
    tags = tag;
#ifdef MAPPED
    at = vec2(uv.x, 1.0 - uv.y);
#endif
#ifdef SMOOTH
    smoothed = mat3(to_camera) * corner_normal;
#endif
#ifdef PAINTED
    painted = paint;
#endif
}
"""

_FRAGMENT = """
flat in vec3 plane_normal;
flat in vec3 plane;
flat in uvec4 tags;
#ifdef COINCIDENT
flat in uint hidden;
#endif
uniform mat3 to_ray;
#ifdef MAPPED
in vec2 at;
#endif
#ifdef TEXTURED
uniform sampler2D surface;
#endif
#ifdef MASKED
uniform sampler2D mask;
#endif
#ifdef SMOOTH
in vec3 smoothed;
#endif
#ifdef PAINTED
in vec3 painted;
#endif
#ifdef LIGHT
uniform vec3 ambient;
#if DIRECTIONALS > 0
uniform vec3 directional[2 * DIRECTIONALS];
#endif
#if LAMPS > 0
uniform vec4 lamp[2 * LAMPS];
#endif
#if SPOTS > 0
uniform vec4 spot[3 * SPOTS];
#endif
#endif
#ifdef ALL
layout(location = 0) out uint color;
layout(location = 1) out vec4 normal_and_depth;
layout(location = 2) out ivec2 ids;
#elif defined(GEOMETRY)
layout(location = 0) out vec4 normal_and_depth;
layout(location = 1) out ivec2 ids;
#else
layout(location = 0) out vec4 linear;
#endif

#ifdef MAPPED
float folded(float place, int wrap) {
    if (wrap == 0) return fract(place);
    return clamp(wrap == 2 ? 1.0 - abs(mod(place, 2.0) - 1.0) : place, 0.0, 1.0);
}

// half a texel within the image, so that its other side is not mixed in
float inside(float place, int wrap, float size) {
    return wrap == 0 ? place : clamp(folded(place, wrap), 0.5 / size, 1.0 - 0.5 / size);
}
#endif

vec3 lamplight(vec4 at, vec4 color, vec3 here, vec3 n, out vec3 towards) {
    towards = at.xyz - here;
    float square = max(dot(towards, towards), 1e-30);
    towards *= inversesqrt(square);
    float share = max(dot(n, towards), 0.0);
    return color.rgb * (at.w > 0.0 ? share * at.w / square : share);
}

void main() {
#ifdef COINCIDENT
    if (hidden != 0u) discard;
#endif
#ifdef MASKED
    ivec2 size = textureSize(mask, 0);
    vec2 hole = vec2(folded(at.x, WRAP_X), folded(at.y, WRAP_Y));
    if (texelFetch(mask, min(ivec2(hole * vec2(size)), size - 1), 0).r < 0.5) discard;
#endif
    vec3 pixel = vec3(gl_FragCoord.xy, 1.0);
    float inverse = dot(plane, pixel);
    // outside the true triangle by a fraction of a pixel, a plane seen edge on may be anywhere
    if (!(abs(inverse - gl_FragCoord.w) <= 0.25 * gl_FragCoord.w)) inverse = gl_FragCoord.w;
    float depth = 1.0 / inverse;
    vec3 n = plane_normal;
#ifdef SMOOTH
    float length_squared = dot(smoothed, smoothed);
    if (length_squared > 1e-12) {
        n = smoothed * inversesqrt(length_squared);
        if (dot(n, plane_normal) < 0.0) n = -n;
    }
#endif
#ifdef LIGHT
    vec3 light = ambient;
#if DIRECTIONALS > 0
    for (int i = 0; i < DIRECTIONALS; ++i)
        light += directional[2 * i + 1] * max(dot(n, directional[2 * i]), 0.0);
#endif
#if LAMPS + SPOTS > 0
    vec3 here = depth * (to_ray * pixel);
    vec3 towards;
#endif
#if LAMPS > 0
    for (int i = 0; i < LAMPS; ++i)
        light += lamplight(lamp[2 * i], lamp[2 * i + 1], here, n, towards);
#endif
#if SPOTS > 0
    for (int i = 0; i < SPOTS; ++i) {
        vec3 found = lamplight(spot[3 * i], spot[3 * i + 1], here, n, towards);
        float along = -dot(towards, spot[3 * i + 2].xyz);
        if (along > 0.0) light += found * pow(along, spot[3 * i + 2].w);
    }
#endif
    vec3 albedo = vec3(unpackHalf2x16(tags.z), unpackHalf2x16(tags.w).x);
#ifdef TEXTURED
#if WRAP_X + WRAP_Y > 0
    vec2 texels = vec2(textureSize(surface, 0));
    vec2 place = vec2(inside(at.x, WRAP_X, texels.x), inside(at.y, WRAP_Y, texels.y));
    albedo *= textureLod(surface, place, 0.0).rgb;
#else
    albedo *= textureLod(surface, at, 0.0).rgb;
#endif
#endif
#ifdef PAINTED
    albedo *= painted;
#endif
    light *= albedo;
#endif
#ifdef ALL
    color = bytes(light, 1.0);
#endif
#ifdef LIGHT_ONLY
    linear = vec4(clamp(light, 0.0, 1.0), 1.0);
#else
    normal_and_depth = vec4(n, depth);
    ids = ivec2(tags.xy);
#endif
}
"""


def sources(kind: Kind) -> tuple[str, str]:
    """Vertex and fragment shader of a program."""
    defined = {
        "TEXTURED": kind.textured,
        "MASKED": kind.masked,
        "MAPPED": kind.textured or kind.masked,
        "SMOOTH": kind.smooth,
        "PAINTED": kind.painted,
        "COINCIDENT": kind.coincident,
        "ALL": kind.output == "all",
        "GEOMETRY": kind.output == "geometry",
        "LIGHT": kind.output != "geometry",
        "LIGHT_ONLY": kind.output == "light",
    }
    head = "#version 450 core\n"
    head += "".join(f"#define {name}\n" for name, wanted in defined.items() if wanted)
    counts = {"DIRECTIONALS": kind.directionals, "LAMPS": kind.lamps, "SPOTS": kind.spots}
    counts |= {f"WRAP_{axis}": WRAPS.index(own) for axis, own in zip("XY", kind.wrap, strict=True)}
    head += "".join(f"#define {name} {count}\n" for name, count in counts.items())
    return head + _VERTEX, head + _ENCODE + _FRAGMENT


_EVERYWHERE = """#version 450 core
void main() {
    gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.5, 1.0);
}
"""

_AVERAGE = """
uniform sampler2D samples;
uniform int times;
layout(location = 0) out uint color;
void main() {
    ivec2 first = ivec2(gl_FragCoord.xy) * times;
    vec4 sum = vec4(0.0);
    for (int y = 0; y < times; ++y)
        for (int x = 0; x < times; ++x)
            sum += texelFetch(samples, first + ivec2(x, y), 0);
    color = sum.a > 0.0 ? bytes(sum.rgb / sum.a, sum.a / float(times * times)) : 0u;
}
"""

RESOLVE = (_EVERYWHERE, "#version 450 core\n" + _ENCODE + _AVERAGE)
"""Program that averages samples of linear light, and encodes the mean."""
