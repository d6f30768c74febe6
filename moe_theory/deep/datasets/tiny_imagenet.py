"""Tiny ImageNet as published, or in one folder for each class as for torchvision's ImageFolder.

Labels of the test images are withheld: validation images are the test split. Classes are numbered in sorted order.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from moe_theory.core.errors import DamagedDataError, MissingDataError, shortened
from moe_theory.deep.datasets.decoder import ImageHeader, decode, headers, kinds_of
from moe_theory.deep.datasets.files import DataSet, Images, Inventory, Layout, LocatedFiles, locate, read_lines
from moe_theory.deep.datasets.folders import check_filled, folders, gathered, images

TITLE = "Tiny ImageNet"
WAY_OUT = "Unpack the archive again."
LAYOUTS = (Layout(("train/", "val/"), ("tiny-imagenet-200",)),)
_SIDE = 64  # pixels
_MAX_LIST_BYTES = 1 << 24  # words.txt, the longest list, has 2.7 MB
_PUBLISHED = (100_000, 10_000)  # images of the two splits
_WNIDS = frozenset(  # of its 200 classes, without the n of nouns
    (
        "01443537 01629819 01641577 01644900 01698640 01742172 01768244 01770393 01774384 01774750 01784675 01855672 "
        "01882714 01910747 01917289 01944390 01945685 01950731 01983481 01984695 02002724 02056570 02058221 02074367 "
        "02085620 02094433 02099601 02099712 02106662 02113799 02123045 02123394 02124075 02125311 02129165 02132136 "
        "02165456 02190166 02206856 02226429 02231487 02233338 02236044 02268443 02279972 02281406 02321529 02364673 "
        "02395406 02403003 02410509 02415577 02423022 02437312 02480495 02481823 02486410 02504458 02509815 02666196 "
        "02669723 02699494 02730930 02769748 02788148 02791270 02793495 02795169 02802426 02808440 02814533 02814860 "
        "02815834 02823428 02837789 02841315 02843684 02883205 02892201 02906734 02909870 02917067 02927161 02948072 "
        "02950826 02963159 02977058 02988304 02999410 03014705 03026506 03042490 03085013 03089624 03100240 03126707 "
        "03160309 03179701 03201208 03250847 03255030 03355925 03388043 03393912 03400231 03404251 03424325 03444034 "
        "03447447 03544143 03584254 03599486 03617480 03637318 03649909 03662601 03670208 03706229 03733131 03763968 "
        "03770439 03796401 03804744 03814639 03837869 03838899 03854065 03891332 03902125 03930313 03937543 03970156 "
        "03976657 03977966 03980874 03983396 03992509 04008634 04023962 04067472 04070727 04074963 04099969 04118538 "
        "04133789 04146614 04149813 04179913 04251144 04254777 04259630 04265275 04275548 04285008 04311004 04328186 "
        "04356056 04366367 04371430 04376876 04398044 04399382 04417672 04456115 04465501 04486054 04487081 04501370 "
        "04507155 04532106 04532670 04540053 04560804 04562935 04596742 04597913 06596364 07579787 07583066 07614500 "
        "07615774 07695742 07711569 07715103 07720875 07734744 07747607 07749582 07753592 07768694 07871810 07873807 "
        "07875152 07920052 09193705 09246464 09256479 09332890 09428293 12267677"
    ).split()
)


def find_tiny_imagenet(folder: Path) -> LocatedFiles:
    """Its folders, if the classes in them are among its own: others have train/ and val/ too.

    Raises: MissingDataError for anything else.
    """
    found = locate(TITLE, folder, LAYOUTS)
    train = folders(found.files[0])
    names = [path.name for path in train if path.name[:1] == "n" and path.name[1:] in _WNIDS]
    if (found.folder / "wnids.txt").is_file() and names:
        return found
    if not names or len(names) < len(train):
        raise MissingDataError(f"no {TITLE} in {found.folder}: its folders are not those of its classes.")
    size = (_SIDE, _SIDE)
    if (first := images(train[0])[:1]) and any(each and each.size != size for each in headers(first)):
        raise MissingDataError(f"no {TITLE} in {found.folder}: its images have {_SIDE} x {_SIDE} pixels.")
    return found


def load_tiny_imagenet(folder: Path) -> DataSet:
    """All images, decoded, 64 x 64 pixels in colour."""
    found = find_tiny_imagenet(folder)
    train, val = found.files
    classes = _classes(found.folder, train)
    names = list(classes)
    splits, every = [], []
    for split in (train, val):
        is_annotated = split == val and (val / "images").is_dir()
        found_there, labels = _annotated(val, classes) if is_annotated else gathered(split, names)
        check_filled(split, names, labels)
        for each in found_there:
            if each.size != (_SIDE, _SIDE):
                reason = f"it has {each.size[0]} x {each.size[1]} pixels, not {_SIDE} x {_SIDE} as {TITLE}"
                raise DamagedDataError(each.path, reason, WAY_OUT)
        splits.append(Images(decode(found_there, "fit", (_SIDE, _SIDE), 0, Counter()), labels))
        every += found_there
    counts = len(splits[0].labels), len(splits[1].labels)
    notes = ["val/ is the test split, as labels of the test images are withheld"]
    if counts != _PUBLISHED or len(classes) != len(_WNIDS):
        notes.append(
            f"{counts[0]:,} + {counts[1]:,} images of {len(classes)} classes; {_PUBLISHED[0]:,} + {_PUBLISHED[1]:,} of "
            f"{len(_WNIDS)} were published"
        )
    about = Inventory(
        f"{TITLE}, by the WordNet ids of its classes in {found.folder}", kinds=kinds_of(every), notes=tuple(notes)
    )
    return DataSet("tiny-imagenet", TITLE, splits[0], splits[1], _class_names(found.folder, classes), about)


def _classes(folder: Path, train: Path) -> dict[str, int]:
    listed = folder / "wnids.txt"
    names = read_lines(listed, _MAX_LIST_BYTES) if listed.is_file() else [path.name for path in folders(train)]
    if not names:
        raise DamagedDataError(listed if listed.is_file() else train, "it names no classes", WAY_OUT)
    return {name: number for number, name in enumerate(sorted(set(names)))}


def _class_names(folder: Path, classes: dict[str, int]) -> tuple[str, ...]:
    path = folder / "words.txt"
    lines = read_lines(path, _MAX_LIST_BYTES) if path.is_file() else []
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return tuple(words.get(name, name) for name in classes)


def _annotated(val: Path, classes: dict[str, int]) -> tuple[list[ImageHeader], np.ndarray]:
    """Images with a list of their classes beside them: a line has the file's name, the class and a box."""
    listed = val / "val_annotations.txt"
    if not listed.is_file():
        raise MissingDataError(f"{listed} is missing, which lists the classes of the images. {WAY_OUT}")
    labels: dict[str, int] = {}
    for number, line in enumerate(read_lines(listed, _MAX_LIST_BYTES), 1):
        name, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in classes:
            reason = f"{shortened(wnid)} of annotation {number} is not one of the {len(classes)} classes"
            raise DamagedDataError(listed, reason, WAY_OUT)
        labels[name] = classes[wnid]
    files = {path.name: path for path in images(val / "images")}
    for name in sorted(files.keys() ^ labels.keys()):
        reason = f"{shortened(name)} is " + ("not among its lines" if name in files else f"not in {val / 'images'}")
        raise DamagedDataError(listed, reason, WAY_OUT)
    found = [header for header in headers(list(files.values())) if header]
    return found, np.array([labels[each.path.name] for each in found], np.int32)
