"""The wheel: contents of an installation without the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"openmxu": "openmxu", "openmxu.rtl": "rtl", "openmxu.sim": "sim"}
SOURCES = (*FOLDERS.values(), "pyproject.toml", "README.md", "LICENSE")


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel built from a copy of the sources, so that the build leaves no files among them."""
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    target = tmp_path_factory.mktemp("wheel")
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--wheel-dir", str(target)]
    build = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(source)], capture_output=True, text=True, check=False
    )
    assert build.returncode == 0, build.stderr
    (result,) = target.glob("*.whl")
    return result


def test_every_package_is_listed():
    listed = set(project()["tool"]["setuptools"]["packages"])
    found = set()
    for package, folder in FOLDERS.items():
        for file in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join((package, *file.parent.relative_to(ROOT / folder).parts)))
    assert listed == found


def test_wheel_holds_every_file_of_the_packages(wheel):
    expected = set()
    for package, folder in FOLDERS.items():
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                expected.add((Path(*package.split(".")) / file.relative_to(ROOT / folder)).as_posix())
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == expected


def test_type_checkers_of_users_read_the_types(wheel):
    """The marker file of PEP 561 also applies to openmxu.rtl and openmxu.sim."""
    assert zipfile.ZipFile(wheel).read("openmxu/py.typed") == b""


def test_wheel_holds_license_and_command(wheel):
    archive = zipfile.ZipFile(wheel)
    info = f"openmxu-{project()['project']['version']}.dist-info"
    assert "BSD 2-Clause License" in archive.read(f"{info}/licenses/LICENSE").decode()
    assert "openmxu = openmxu.cli:main" in archive.read(f"{info}/entry_points.txt").decode()


def test_installed_wheel_imports_from_its_own_files(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = "import openmxu, openmxu.rtl, openmxu.sim, openmxu.cli\n" + "\n".join(
        f"print({package}.__file__)" for package in ("openmxu", "openmxu.rtl", "openmxu.sim", "openmxu.cli")
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    assert all(Path(line).is_relative_to(tmp_path) for line in result.stdout.split())


def test_version_is_the_project_version():
    result = subprocess.run(
        [sys.executable, "-m", "openmxu.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"openmxu {project()['project']['version']}\n"
