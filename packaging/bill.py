"""bill.py TARBALL OUT: writes the bill of materials, in SPDX 2.3, and checks it.

It lists the sources, by the checksum of their tarball, and every crate that Cargo links into the
command, by the checksum that Cargo.lock pins. The core depends on the C library alone. Run by
dist.py with the Python that has spdx-tools, and SOURCE_DATE_EPOCH set.
"""

import datetime
import os
import pathlib
import sys

from spdx_tools.common.spdx_licensing import spdx_licensing
from spdx_tools.spdx.model import (
    Actor, ActorType, Checksum, ChecksumAlgorithm, CreationInfo, Document, ExternalPackageRef,
    ExternalPackageRefCategory, Package, Relationship, RelationshipType, SpdxNoAssertion)
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
from spdx_tools.spdx.writer.write_anything import write_file

import crates
import dist
import project

AUTHORS = Actor(ActorType.ORGANIZATION, "The hakmem authors")


def licence(text):
    return SpdxNoAssertion() if text == "NOASSERTION" else spdx_licensing.parse(text)


def sources(tarball):
    return Package(
        spdx_id="SPDXRef-hakmem", name="hakmem", version=project.version(), supplier=AUTHORS,
        download_location=SpdxNoAssertion(), files_analyzed=False, file_name=tarball.name,
        checksums=[Checksum(ChecksumAlgorithm.SHA256, dist.digest(tarball))],
        license_declared=licence("MIT"), license_concluded=licence("MIT"),
        copyright_text="Copyright (c) 2026 The hakmem authors")


def crate(package, checksum):
    name, version = package["name"], package["version"]
    return Package(
        spdx_id="SPDXRef-crate-%s-%s" % (name.replace("_", "-"), version.replace("+", "-")),
        name=name, version=version, files_analyzed=False,
        download_location=SpdxNoAssertion(),
        checksums=[Checksum(ChecksumAlgorithm.SHA256, checksum)],
        license_declared=licence(crates.licence(package)), license_concluded=SpdxNoAssertion(),
        copyright_text=SpdxNoAssertion(),
        external_references=[ExternalPackageRef(
            ExternalPackageRefCategory.PACKAGE_MANAGER, "purl",
            "pkg:cargo/%s@%s" % (name, version))])


def bill(tarball):
    own = sources(tarball)
    checksums = crates.checksums()
    linked = [crate(package, checksums[package["name"], package["version"]])
              for package in crates.linked()]
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]),
                                              datetime.timezone.utc).replace(tzinfo=None)
    name = "hakmem-" + own.version
    about = CreationInfo(
        spdx_version="SPDX-2.3", spdx_id="SPDXRef-DOCUMENT", name=name,
        document_namespace="https://spdx.org/spdxdocs/%s-%s" % (name, own.checksums[0].value),
        creators=[AUTHORS], created=created)
    relations = [Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, own.spdx_id)]
    relations += [Relationship(own.spdx_id, RelationshipType.DEPENDS_ON, package.spdx_id)
                  for package in linked]
    return Document(about, packages=[own] + linked, relationships=relations)


def main():
    document = bill(pathlib.Path(sys.argv[1]))
    defects = validate_full_spdx_document(document)
    if defects:
        raise project.Failure("\n".join(defect.validation_message for defect in defects))
    write_file(document, sys.argv[2], validate=False)


if __name__ == "__main__":
    project.main_of(main)
