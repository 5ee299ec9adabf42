"""In: any torch module that maps token ids to logits. Out: an audit in a notebook, no workflow.

sites = fca.find_sites(model, "blocks.*.gate")
record = fca.capture(model, sites, tokens)
replay = fca.replay(model, sites, tokens, fca.cross_input(record, seed=0))
float(replay.nll.mean() - record.nll.mean())  # the penalty, nats per token

Static profiles come from a record of other inputs, and are refused on inputs that they were
estimated on.
"""
