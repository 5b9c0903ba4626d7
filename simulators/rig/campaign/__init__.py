"""The campaign: whole tables under seeded faults, judged by where the cards really are.

What is asked for: `cli`, `plan` (which table, and what goes wrong there), `kinds` (of tables), `blows` (to
daemon and power), `slips` (of people; their rows in `slips_told`, `slips_dealt` and `slips_loaded`).
How it is played: `run` and `workers` (blocks of shoes), `table` (one table), `listening` (a shoe alone),
`store` and `journals` (where facts lie), `kept` (what stays of a replay).
Who plays on when something went wrong: `people`, with the scripts `go_on`, `rounds` and `remedies`.
Who judges: `judge`, with `drawn` (cards one by one), `commands`, and `excused` by the rows of `excuses`.
What came of it: `result`, and `shrink` for the shortest script that fails.
"""
