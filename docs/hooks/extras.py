"""The table of extras, from the list of optional libraries."""

from setsup.optional import LIBRARIES


def table() -> str:
    """What each extra is for and what it installs; at the end the libraries that none installs."""
    packages, uses = dict[str, list[str]](), dict[str, list[str]]()
    for library in LIBRARIES.values():
        for extra in library.extras:
            packages.setdefault(extra, []).append(library.package)
            known = uses.setdefault(extra, [])
            known += [use for use in library.use.split("; ") if use not in known]
    rows = ["| for | extra | installs |", "|---|---|---|"]
    rows += [
        f"| {'; '.join(uses[extra])} | `{extra}` | {', '.join(f'`{name}`' for name in packages[extra])} |"
        for extra in packages
    ]
    rows += [
        f"| {library.use} | none | `pip install {library.package}` |"
        for library in LIBRARIES.values()
        if not library.extras
    ]
    return "\n".join(rows)
