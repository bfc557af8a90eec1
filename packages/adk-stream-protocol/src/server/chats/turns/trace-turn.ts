import { context, SpanStatusCode, trace } from '@opentelemetry/api'

import type { RunOutcome } from '../../../turns/run-turn.ts'
import type { TurnInfo } from '../../options.ts'

/**
 * Runs a turn inside an OpenTelemetry span. The span records the chat and how the turn ended, never its content (OB2). Without a
 * registered provider it records nothing.
 */
export async function traceTurn(
  turn: TurnInfo,
  run: () => Promise<RunOutcome>,
): Promise<RunOutcome> {
  const span = trace.getTracer('adk-stream-protocol').startSpan('turn', {
    attributes: {
      'gen_ai.conversation.id': turn.chatId,
      'adk_stream_protocol.message_id': turn.messageId,
    },
  })
  try {
    const outcome = await context.with(trace.setSpan(context.active(), span), run)
    span.setAttribute('adk_stream_protocol.end', outcome.end)
    if (outcome.end === 'failed') span.setStatus({ code: SpanStatusCode.ERROR })
    return outcome
  } finally {
    span.end()
  }
}
