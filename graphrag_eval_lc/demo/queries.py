"""The SPARQL queries that the demo's rule-based planner sends, right ones and wrong ones."""

PROLOGUE = "PREFIX cim: <https://cim.ucaiug.io/ns#>\n"

_AT_SUBSTATION = {
    "AC": (
        "cim:Terminal.ConductingEquipment",
        "cim:Terminal.ConnectivityNode/cim:ConnectivityNode.ConnectivityNodeContainer/cim:VoltageLevel.Substation",
    ),
    "DC": (
        "cim:DCTerminal.DCConductingEquipment",
        "cim:DCBaseTerminal.DCNode/cim:DCNode.DCEquipmentContainer/cim:DCConverterUnit.Substation",
    ),
}


def transformers(substation: str, rating: str = "ratedS") -> str:
    """Return the transformers of a substation with a rating of their ends: ``ratedS`` or ``ratedU``."""
    return f"""SELECT DISTINCT ?transformer ?name ?{rating} WHERE {{
  ?transformer a cim:PowerTransformer ;
    cim:Equipment.EquipmentContainer <{substation}> ;
    cim:IdentifiedObject.name ?name .
  ?end cim:PowerTransformerEnd.PowerTransformer ?transformer ;
    cim:PowerTransformerEnd.{rating} ?{rating} .
}} ORDER BY ?name"""


def substations(zone: str) -> str:
    """Return the substations of a bidding zone."""
    return f"""SELECT ?substation ?name WHERE {{
  ?substation a cim:Substation ;
    cim:Substation.Region <{zone}> ;
    cim:IdentifiedObject.name ?name .
}} ORDER BY ?name"""


def neighbours(substation: str, current: str, *, without_itself: bool = True) -> str:
    """Return the substations at the other ends of a substation's lines; ``current`` is ``AC`` or ``DC``."""
    equipment, path = _AT_SUBSTATION[current]
    ends = "\n".join(
        f"  ?{end} {equipment} ?line ;\n    {path} {target} ."
        for end, target in (("here", f"<{substation}>"), ("there", "?neighbour"))
    )
    condition = f"\n  FILTER(?neighbour != <{substation}>)" if without_itself else ""
    return f"""SELECT DISTINCT ?neighbour ?name WHERE {{
  ?line a cim:{current}LineSegment .
{ends}
  ?neighbour cim:IdentifiedObject.name ?name .{condition}
}} ORDER BY ?name"""


def line_voltages(substation: str, *, distinct: bool = False) -> str:
    """Return the base voltages of a substation's AC lines, a row for each line or each voltage (``distinct``)."""
    equipment, path = _AT_SUBSTATION["AC"]
    return f"""SELECT {"DISTINCT " if distinct else ""}?voltage WHERE {{
  ?line a cim:ACLineSegment ;
    cim:ConductingEquipment.BaseVoltage/cim:BaseVoltage.nominalVoltage ?voltage .
  ?end {equipment} ?line ;
    {path} <{substation}> .
}} ORDER BY ?voltage"""


def capacity(zone: str, kinds: list[str]) -> str:
    """Return the summed operating limits of a zone's units of these kinds, ``Hydro`` or ``Wind``."""
    classes = " ".join(f"cim:{kind}GeneratingUnit" for kind in kinds)
    return f"""SELECT (SUM(?power) AS ?capacity) WHERE {{
  VALUES ?class {{ {classes} }}
  ?unit a ?class ;
    cim:Equipment.EquipmentContainer/cim:Substation.Region <{zone}> ;
    cim:GeneratingUnit.maxOperatingP ?power .
}}"""


def machine_ratings(zone: str) -> str:
    """Return the summed apparent power of a zone's machines: a wrong query for their capacity, which is lower."""
    return f"""SELECT (SUM(?rating) AS ?capacity) WHERE {{
  ?machine a cim:SynchronousMachine ;
    cim:RotatingMachine.ratedS ?rating ;
    cim:RotatingMachine.GeneratingUnit/cim:Equipment.EquipmentContainer/cim:Substation.Region <{zone}> .
}}"""


def dc_link(zone: str, other_zone: str) -> str:
    """Ask whether a DC line joins two bidding zones."""
    equipment, path = _AT_SUBSTATION["DC"]
    return f"""ASK {{
  ?here {equipment} ?line ;
    {path}/cim:Substation.Region <{zone}> .
  ?there {equipment} ?line ;
    {path}/cim:Substation.Region <{other_zone}> .
}}"""


def longest_lines(count: int, condition: str = "", *, order: str = "DESC") -> str:
    """Return the AC lines by length."""
    return f"""SELECT DISTINCT ?line ?name ?length WHERE {{
  ?line a cim:ACLineSegment ;
    cim:Conductor.length ?length ;
    cim:IdentifiedObject.name ?name .{condition}
}} ORDER BY {order}(?length) LIMIT {count}"""


def ends_in(zone: str) -> str:
    """Return the condition that a line ends in a bidding zone."""
    equipment, path = _AT_SUBSTATION["AC"]
    return f"\n  ?end {equipment} ?line ;\n    {path}/cim:Substation.Region <{zone}> ."


def has_voltage(kilovolts: str) -> str:
    """Return the condition that a line has a base voltage."""
    path = "cim:ConductingEquipment.BaseVoltage/cim:BaseVoltage.nominalVoltage"
    return f"\n  ?line {path} ?voltage .\n  FILTER(?voltage = {kilovolts})"


def dc_lines_of_class(class_name: str, count: int) -> str:
    """Return DC lines by length: a query that finds nothing, because only AC lines have a length."""
    return f"""SELECT ?line ?length WHERE {{
  ?line a cim:{class_name} ;
    cim:Conductor.length ?length .
}} ORDER BY DESC(?length) LIMIT {count}"""
