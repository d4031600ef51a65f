"""Why another tool's figure differs from ours, one sentence a code; the site has the same in Chinese."""

REASONS = {
    "from_sent": "Counts from when the request was sent; ours counts from when the plan wanted it, so that a "
    "client or a slot that was late shows.",
    "role_chunk_counts": "Takes the first chunk with choices for the first token, also one that only names "
    "the role; ours waits for output.",
    "one_token_first": "Divides by all tokens but one; ours divides by the tokens that came after the first "
    "read, which held several.",
    "finish_chunk_not_kept": "Runs to the chunk with the finish reason, whose time is not recorded here; the "
    "last token stands for it.",
    "whole_load": "Divides by the time from the start of the load to its end, failed requests included; ours "
    "ends with the last token.",
    "unfinished_counts": "Counts an answer that ended without a finish reason as a success; ours is "
    "“incomplete” and in no percentile.",
    "includes_ttft": "Divides the whole latency, the time to the first token included, by all tokens; ours "
    "measures the time between tokens alone.",
    "mean_of_request": "Is one mean for each request, in which a long gap disappears; ours pools every gap.",
    "weighted_by_tokens": "Weights each request by its tokens and takes values that occurred; ours weights "
    "requests alike and interpolates.",
    "nearest_rank": "Percentiles are values that occurred (nearest rank); ours are interpolated.",
    "to_the_stream_end": "Ends at the last chunk of the stream, usage included; ours ends at the last token.",
    "called_inter_token_latency": "Is called inter-token latency there, and divides by all tokens but one; "
    "ours divides by the tokens after the first read.",
    "called_inter_chunk_latency": "Is called inter-chunk latency there; the gaps between chunks are pooled "
    "as ours are.",
    "own_tokenizer": "Counts tokens with its own tokenizer unless told otherwise; here the server's count is "
    "used.",
    "to_the_last_completion": "Divides by the time from the first request to the last completion, failed "
    "ones included; ours ends with the last token.",
    "overlapping_warmup_stays": "Leaves out the warm-up requests themselves; ours also leaves out requests "
    "that overlap them.",
}
