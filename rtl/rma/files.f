// RMA: remote memory.
build/rtl/velo_pkg.sv
-f rtl/common/files.f
-f rtl/htax/files.f
rtl/velo/rtl/velo_contexts.sv
-f rtl/atu/files.f
rtl/rma/rtl/velo_rma_pkg.sv
rtl/rma/rtl/velo_rma_buffer.sv
rtl/rma/rtl/velo_rma_mux.sv
rtl/rma/rtl/velo_rma_pack.sv
rtl/rma/rtl/velo_rma_fragment.sv
rtl/rma/rtl/velo_rma_intake.sv
rtl/rma/rtl/velo_rma_reader.sv
rtl/rma/rtl/velo_rma_emit.sv
rtl/rma/rtl/velo_rma_take.sv
rtl/rma/rtl/velo_rma_requester.sv
rtl/rma/rtl/velo_rma_completer.sv
rtl/rma/rtl/velo_rma_asks.sv
rtl/rma/rtl/velo_rma_responder.sv
rtl/rma/rtl/velo_rma_pending.sv
rtl/rma/rtl/velo_rma_notifier.sv
rtl/rma/rtl/velo_rma_reply.sv
rtl/rma/rtl/velo_rma_host.sv
rtl/rma/rtl/velo_rma_source.sv
rtl/rma/rtl/velo_rma_serve.sv
rtl/rma/rtl/velo_rma_accept.sv
rtl/rma/rtl/velo_rma_target.sv
rtl/rma/rtl/velo_rma_finish.sv
rtl/rma/rtl/velo_rma.sv
