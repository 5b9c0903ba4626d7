"""The campaign: whole tables under seeded faults, judged by where the cards really are."""
