// A scatter of up to a million points: by WebGL2, or on a 2D canvas where no GPU has it; found again through a grid.
"use strict";
const scatter = (() => {
  const VERTEX = `#version 300 es
    uniform vec4 view; uniform float size; uniform sampler2D palette;
    in vec2 place; in uint code; out vec3 colour;
    void main() {
      vec4 found = texelFetch(palette, ivec2(int(code), 0), 0);
      colour = found.rgb;
      gl_Position = found.a > 0.5 ? vec4(place * view.xy + view.zw, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
      gl_PointSize = size;
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float;
    uniform float size; in vec3 colour; out vec4 shown;
    void main() {
      vec2 away = gl_PointCoord - 0.5;
      if (size > 3.0 && dot(away, away) > 0.25) discard;
      shown = vec4(colour, 1.0);
    }`;

  function compiled(gl) {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
  }

  const OPTIONS = {antialias: false, depth: false};
  const NEUTRAL = [123, 135, 148, 255]; // of points without a colour, seen on a light ground and on a dark one

  function rendererOf(gl) {
    const masked = gl.getParameter(gl.RENDERER), more = /^WebKit/.test(masked) && gl.getExtension("WEBGL_debug_renderer_info");
    return more ? gl.getParameter(more.UNMASKED_RENDERER_WEBGL) : masked;
  }

  // whether a GPU has WebGL2, which by software takes twenty times as long as a 2D canvas; tried on a canvas of its
  // own, since one that had it has no 2D context any more
  let has = null;
  function hasGl() {
    if (has === null) {
      const gl = document.createElement("canvas").getContext("webgl2", OPTIONS);
      has = Boolean(gl && compiled(gl)) && !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(rendererOf(gl));
      if (gl && gl.getExtension("WEBGL_lose_context")) gl.getExtension("WEBGL_lose_context").loseContext();
    }
    return has;
  }

  // draws by WebGL2: paint(pixels of a unit, pixels of the middle, diameter), recolour(codes, palette)
  function byGl(canvas, places) {
    const gl = canvas.getContext("webgl2", OPTIONS);
    gl.useProgram(compiled(gl));
    const program = gl.getParameter(gl.CURRENT_PROGRAM);
    const at = name => gl.getUniformLocation(program, name), named = name => gl.getAttribLocation(program, name);
    const [view, size] = [at("view"), at("size")];
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(named("place"));
    gl.vertexAttribPointer(named("place"), 2, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.enableVertexAttribArray(named("code"));
    gl.vertexAttribIPointer(named("code"), 1, gl.UNSIGNED_BYTE, 0, 0);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.clearColor(0, 0, 0, 0);
    return {
      name: "WebGL2",
      recolour: (codes, palette) => {
        gl.bufferData(gl.ARRAY_BUFFER, codes, gl.STATIC_DRAW);
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, palette);
      },
      paint: (scale, shift, diameter) => {
        gl.viewport(0, 0, canvas.width, canvas.height);
        gl.clear(gl.COLOR_BUFFER_BIT);
        // from pixels, whose y runs down, to -1 … 1
        gl.uniform4f(view, 2 * scale / canvas.width, 2 * scale / canvas.height, 2 * shift[0] / canvas.width - 1, 1 - 2 * shift[1] / canvas.height);
        gl.uniform1f(size, diameter);
        gl.drawArrays(gl.POINTS, 0, places.length / 2);
      },
    };
  }

  // the same on a 2D canvas, pixel by pixel
  function by2d(canvas, places) {
    const context = canvas.getContext("2d");
    let codes = null, colours = null;
    return {
      name: "Canvas 2D",
      recolour: (given, palette) => { codes = given; colours = new Uint32Array(palette.slice().buffer); },
      paint: (scale, shift, diameter) => {
        const width = canvas.width, height = canvas.height, image = context.createImageData(width, height);
        const pixels = new Uint32Array(image.data.buffer), round = Math.max(1, Math.round(diameter)), half = round / 2, disc = [];
        for (let y = 0; y < round; y++) for (let x = 0; x < round; x++) {
          if (round <= 3 || Math.hypot(x + 0.5 - half, y + 0.5 - half) <= half) disc.push([x, y]);
        }
        for (let point = 0; point < codes.length; point++) {
          const colour = colours[codes[point]];
          if (colour >>> 24 === 0) continue;
          const left = Math.round(places[2 * point] * scale + shift[0] - half), top = Math.round(shift[1] - places[2 * point + 1] * scale - half);
          if (left <= -round || top <= -round || left >= width || top >= height) continue;
          for (const [x, y] of disc) if (left + x >= 0 && left + x < width && top + y >= 0 && top + y < height) pixels[(top + y) * width + left + x] = colour;
        }
        context.putImageData(image, 0, 0);
      },
    };
  }

  // points by cells of a square grid, and the nearest one that is shown to a place
  function grid(places, low, side) {
    const points = places.length / 2, cells = Math.max(1, Math.min(1024, Math.ceil(Math.sqrt(points / 2))));
    const cell = value => Math.min(cells - 1, Math.max(0, Math.floor(value * cells / side)));
    const starts = new Uint32Array(cells * cells + 1), items = new Uint32Array(points), own = new Uint32Array(points);
    for (let point = 0; point < points; point++) {
      own[point] = cell(places[2 * point + 1] - low[1]) * cells + cell(places[2 * point] - low[0]);
      starts[own[point] + 1]++;
    }
    for (let place = 0; place < cells * cells; place++) starts[place + 1] += starts[place];
    const next = starts.slice();
    for (let point = 0; point < points; point++) items[next[own[point]]++] = point;
    return (x, y, within, isShown) => {
      let best = null, least = within * within;
      for (let row = cell(y - within - low[1]); row <= cell(y + within - low[1]); row++) {
        const [from, to] = [cell(x - within - low[0]), cell(x + within - low[0])].map(column => row * cells + column);
        for (let place = starts[from]; place < starts[to + 1]; place++) {
          const point = items[place], away = (places[2 * point] - x) ** 2 + (places[2 * point + 1] - y) ** 2;
          if (away <= least && isShown(point)) { least = away; best = point; }
        }
      }
      return best;
    };
  }

  // a plot on a canvas; points are Float32Array of x, y. onView is called after each frame
  return (canvas, points, onView = () => {}) => {
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (let at = 0; at < points.length; at++) {
      low[at % 2] = Math.min(low[at % 2], points[at]);
      high[at % 2] = Math.max(high[at % 2], points[at]);
    }
    // around the middle, so that a deep zoom keeps its digits
    const middle = low.map((value, axis) => (value + high[axis]) / 2), side = Math.max(high[0] - low[0], high[1] - low[1]) || 1;
    const places = points.map((value, at) => value - middle[at % 2]);
    const nearest = grid(places, [-side / 2, -side / 2], side);
    let codes = new Uint8Array(points.length / 2), palette = Uint8Array.from({length: 1024}, (_, at) => NEUTRAL[at % 4]), painter = null, frame = 0;
    let scale = 1, shift = [0, 0], zoom = 1; // pixels of a unit; where the middle is, in pixels of the canvas

    const ratio = () => canvas.width / (canvas.clientWidth || 1);
    const whole = () => 0.92 * Math.min(canvas.width / (high[0] - low[0] || side), canvas.height / (high[1] - low[1] || side));
    const diameter = () => {
      const usual = Math.max(2, Math.min(canvas.clientWidth, canvas.clientHeight) / (2 * Math.sqrt(codes.length)));
      return ratio() * Math.min(14, Math.max(usual, 2) * Math.max(1, zoom ** 0.35));
    };
    const begin = () => {
      painter = (hasGl() ? byGl : by2d)(canvas, places);
      painter.recolour(codes, palette);
    };
    const draw = () => { frame = 0; painter.paint(scale, shift, diameter()); onView(); };
    const later = () => { if (!frame) frame = requestAnimationFrame(draw); };
    const fit = () => { scale = whole(); zoom = 1; shift = [canvas.width / 2, canvas.height / 2]; later(); };
    const zoomBy = (by, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
      const now = Math.min(5000, Math.max(0.5, zoom * by)), change = now / zoom, at = [x * ratio(), y * ratio()];
      shift = shift.map((value, axis) => at[axis] + (value - at[axis]) * change);
      zoom = now;
      scale = whole() * zoom;
      later();
    };
    const pan = (x, y) => { shift = [shift[0] + x * ratio(), shift[1] + y * ratio()]; later(); };
    const resize = () => {
      const sharp = Math.min(2, devicePixelRatio || 1), [width, height] = [canvas.clientWidth, canvas.clientHeight].map(one => Math.max(1, Math.round(one * sharp)));
      if (canvas.width === width && canvas.height === height) return;
      const held = [(canvas.width / 2 - shift[0]) / scale, (canvas.height / 2 - shift[1]) / scale];
      canvas.width = width; canvas.height = height;
      scale = whole() * zoom;
      shift = [width / 2 - held[0] * scale, height / 2 - held[1] * scale];
      draw();
    };
    canvas.addEventListener("webglcontextlost", event => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => { begin(); draw(); });
    const watch = new ResizeObserver(resize);
    begin();
    canvas.width = canvas.height = 1;
    fit();
    resize();
    watch.observe(canvas);
    const found = {
      draw, fit, zoomBy, pan,
      get name() { return painter.name; },
      get zoom() { return zoom; },
      size: () => diameter() / ratio(),
      // palette: (r, g, b, a) of each code, a = 0 for those that are hidden
      recolour: (given, colours) => { codes = given; palette = new Uint8Array(1024); palette.set(colours); painter.recolour(codes, palette); later(); },
      // where a point is, and which is at a place, in CSS pixels
      where: point => [(places[2 * point] * scale + shift[0]) / ratio(), (shift[1] - places[2 * point + 1] * scale) / ratio()],
      at: (x, y, within) => nearest((x * ratio() - shift[0]) / scale, (shift[1] - y * ratio()) / scale, within * ratio() / scale, point => palette[4 * codes[point] + 3] > 0),
      close: () => { watch.disconnect(); cancelAnimationFrame(frame); },
    };
    canvas.scatter = found; // for tests and measurements
    return found;
  };
})();
