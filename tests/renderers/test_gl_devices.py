"""In which order the gl renderer tries devices: a faked EGL tells what drivers tell."""

import ctypes
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from setsup.errors import DataError
from setsup_renderers import gl_context

SOFTWARE = "EGL_EXT_device_base EGL_MESA_device_software"
HARDWARE = "EGL_EXT_device_base EGL_EXT_device_drm"
EXTENSIONS, CUDA_DEVICE = 0x3055, 0x323A  # of the registry of EGL: EGL_EXTENSIONS, EGL_CUDA_DEVICE_NV


def faked(devices: Sequence[tuple[str, int | None]], without: Sequence[bytes] = ()) -> Any:
    """EGL with devices, each with its extensions and CUDA's number of it."""
    handles = [0x1000 + 8 * number for number in range(len(devices))]

    def listed(most: int, room: int, count: int) -> int:
        shown = handles[:most]
        for place, handle in enumerate(shown):
            ctypes.c_void_p.from_address(room + 8 * place).value = handle
        ctypes.c_int.from_address(count).value = len(shown)
        return 1

    texts = [ctypes.create_string_buffer(extensions.encode()) for extensions, _ in devices]

    def told(device: int, what: int) -> int:
        assert what == EXTENSIONS
        return ctypes.addressof(texts[handles.index(device)])

    def number(device: int, what: int, out: int) -> int:
        found = devices[handles.index(device)][1]
        if what != CUDA_DEVICE or found is None:
            return 0
        ctypes.c_ssize_t.from_address(out).value = found
        return 1

    place, code, word = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
    kept: dict[bytes, Callable[..., Any]] = {
        b"eglQueryDevicesEXT": ctypes.CFUNCTYPE(word, code, place, place)(listed),
        b"eglQueryDeviceStringEXT": ctypes.CFUNCTYPE(place, place, code)(told),
        b"eglQueryDeviceAttribEXT": ctypes.CFUNCTYPE(word, place, code, place)(number),
    }
    for name in without:
        kept.pop(name)
    found = {name: ctypes.cast(function, place).value for name, function in kept.items()}  # type: ignore[arg-type]
    return SimpleNamespace(eglGetProcAddress=found.get, kept=(kept, texts))


@pytest.mark.parametrize(
    ("devices", "order"),
    [
        ([(SOFTWARE, None)], [0]),
        ([(SOFTWARE, None), (HARDWARE, None), (HARDWARE, None)], [1, 2, 0]),
        # of two GPUs, which EGL counts the other way round
        ([(HARDWARE, 1), (HARDWARE, 0), (SOFTWARE, None)], [1, 0, 2]),
        # CUDA_VISIBLE_DEVICES=1: the driver tells no number of the other, and 0 of that
        ([(HARDWARE, None), (HARDWARE, 0), (SOFTWARE, None)], [1, 0, 2]),
        # CUDA_VISIBLE_DEVICES=3,1 of four
        ([(HARDWARE, None), (HARDWARE, 1), (HARDWARE, None), (HARDWARE, 0)], [3, 1, 0, 2]),
        # none is seen: as EGL counts them
        ([(HARDWARE, None), (HARDWARE, None)], [0, 1]),
        # an old driver that tells 0 of several
        ([(SOFTWARE, None), (HARDWARE, 0), (HARDWARE, 0)], [1, 2, 0]),
        ([(HARDWARE, -1), (HARDWARE, 0)], [1, 0]),
    ],
)
def test_gpus_that_cuda_sees_come_first(
    devices: Sequence[tuple[str, int | None]], order: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    egl = faked(devices)
    monkeypatch.setattr(gl_context, "_egl", lambda: egl)
    assert gl_context._devices(None) == order
    assert gl_context._devices(len(devices) - 1) == [len(devices) - 1]  # who names one gets it
    count = len(devices)
    found = "only one device, number 0" if count == 1 else f"{count} devices, numbered from 0 to {count - 1}"
    with pytest.raises(DataError, match=f"GPU {count} does not exist: EGL found {found}$"):
        gl_context._devices(len(devices))


@pytest.mark.parametrize(
    ("without", "order"),
    [
        ([b"eglQueryDeviceAttribEXT"], [1, 2, 0]),
        ([b"eglQueryDeviceStringEXT"], [2, 1, 0]),
        ([b"eglQueryDeviceStringEXT", b"eglQueryDeviceAttribEXT"], [0, 1, 2]),
    ],
)
def test_drivers_that_tell_less(without: list[bytes], order: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    egl = faked([(SOFTWARE, None), (HARDWARE, 1), (HARDWARE, 0)], without)
    monkeypatch.setattr(gl_context, "_egl", lambda: egl)
    assert gl_context._devices(None) == order


def test_without_devices_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for egl in (faked([]), faked([], [b"eglQueryDevicesEXT"])):
        monkeypatch.setattr(gl_context, "_egl", lambda egl=egl: egl)
        with pytest.raises(DataError, match=r"EGL found no device; install the driver .* apt-get install libegl1"):
            gl_context._devices(None)
