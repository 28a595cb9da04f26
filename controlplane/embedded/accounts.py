"""PostgreSQL refuses to run as root: then it runs under an operating-system user of its own.

That user must reach the program and the data. Where a parent folder is closed to others, such as a private home folder,
both are put elsewhere (`Home.outside`); the permissions of folders that are not ours are never changed.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from controlplane.embedded.errors import PrerequisiteMissing
from controlplane.embedded.home import Home
from controlplane.embedded.processes import Account

USER = "pgserver"


def server_account() -> Account | None:
    """None for an ordinary user; as root the user `pgserver`, made when missing. Raises PrerequisiteMissing."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(USER)
    except KeyError:
        _create_user()
        entry = pwd.getpwnam(USER)
    return Account(entry.pw_name, grp.getgrgid(entry.pw_gid).gr_name)


def _create_user() -> None:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", USER]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = done.stderr.strip() if done.returncode not in (0, 9) else ""  # 9: somebody else just made it
    except OSError as error:
        reason = str(error)
    if reason:
        raise PrerequisiteMissing(
            f"PostgreSQL cannot run as root, and the user {USER} could not be made ({reason}). "
            "Start the stack as an ordinary user."
        )


def data_folder(home: Home, name: str, account: Account | None) -> Path:
    """The folder for a service's data, there already and owned by the account."""
    if account is None:
        folder = home.path / name / "data"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder
    base = home.path if can_enter(account, home.path) else home.create_outside()
    folder = base / name / "data"
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    shutil.chown(folder, account.user, account.group)
    folder.chmod(0o700)
    return folder


def runnable_programs(home: Home, installation: Path, account: Account | None) -> Path:
    """The installation's `bin` folder, or that of a copy which the account can run.

    The programs find their libraries beside the wheel's package, so a copy keeps that arrangement.
    """
    if account is None or can_run(account, installation / "bin" / "initdb"):
        return installation / "bin"
    package = installation.parent
    libraries = package.with_name(f"{package.name}.libs")
    copy = home.create_outside() / "programs"
    if not copy.exists():
        unfinished = copy.with_name("programs.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(installation, unfinished / package.name / installation.name, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        unfinished.rename(copy)
    return copy / package.name / installation.name / "bin"


def can_enter(account: Account, folder: Path) -> bool:
    return _try_as(account, "test", "-x", str(folder))


def can_run(account: Account, program: Path) -> bool:
    return _try_as(account, str(program), "--version")


def _try_as(account: Account, *command: str) -> bool:
    try:
        done = subprocess.run(
            command, user=account.user, group=account.group, extra_groups=[], cwd="/", capture_output=True, check=False
        )
    except PermissionError:
        return False
    return done.returncode == 0
