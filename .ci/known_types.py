"""Print the share of public symbols whose types every checker infers alike, from the JSON of `pyright --verifytypes`;
fail below a floor. Modules of statements do not count: commands find their claims by id, and nobody imports them.
"""

import json
import sys

floor = float(sys.argv[1])
symbols = json.load(sys.stdin)["typeCompleteness"]["symbols"]
public = [each for each in symbols if each["isExported"] and ".statements." not in each["name"]]
share = sum(each["isTypeKnown"] for each in public) / len(public)
print(f"{share:.1%} of {len(public):,} public symbols have known types; at least {floor:.0%} must")
sys.exit(share < floor)
