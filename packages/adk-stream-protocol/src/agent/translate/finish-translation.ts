import type { Chunk, FinishReason } from '../../protocol/chunk.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { MessageMetadata, TurnError } from '../../protocol/message.ts'
import { totalUsage } from './count-usage.ts'
import { ChunkWriter } from './chunk-writer.ts'
import type { Translation } from './translation.ts'
import { isWaiting } from './translation.ts'

/** How the run of a turn ended. `left` means that its calls are still running and their results follow later. */
export type TurnEnd = 'completed' | 'stopped' | 'left'

/** Closes open parts and steps, and writes the end of the turn. */
export function finishTranslation(state: Translation, end: TurnEnd): Chunk[] {
  const writer = new ChunkWriter(state)
  writer.closeText()
  const runs = settleRunning(writer, end)
  const waiting = isWaiting(state) || runs
  const { hasResults } = writer.state
  writer.closeStep()
  const error = state.error ?? (end === 'completed' && isBlocked(state) ? BLOCKED : undefined)
  if (error) return [...writer.chunks, ...createErrorChunks(state, error)]
  if (hasResults && !waiting) writer.chunks.push(...EMPTY_STEP)
  if (end === 'stopped') writer.chunks.push({ type: 'abort' })
  writer.chunks.push({
    type: 'finish',
    finishReason: waiting ? 'tool-calls' : toFinishReason(state),
    messageMetadata: { ...readMetadata(state), ...(end === 'stopped' && { stopped: true }) },
  })
  return writer.chunks
}

/** Settles calls without a result, unless they are left running. Returns whether calls are left running. */
function settleRunning(writer: ChunkWriter, end: TurnEnd): boolean {
  const open = [...writer.state.calls].filter(([, call]) => call.state === 'running')
  if (end === 'left') return open.length > 0
  for (const [toolCallId] of open) writer.settle(toolCallId, { errorText: NO_RESULT[end] })
  return false
}

/**
 * CH4: clients that send automatically would resend a message that ends with a tool result. An empty step after it
 * prevents that. The metadata of `finish` makes clients notice the step.
 */
const EMPTY_STEP = [{ type: 'start-step' }, { type: 'finish-step' }] as const

function toFinishReason({ finishReason = 'stop' }: Translation): FinishReason {
  return finishReason
}

const NO_RESULT: Record<Exclude<TurnEnd, 'left'>, string> = {
  completed: 'The call ended without a result.',
  stopped: 'Stopped before the result arrived. The call may or may not have taken effect.',
}

const BLOCKED = new ProtocolError('model-blocked').toJSON().error

// ADK 2.0.0 drops the reason why Gemini blocked a prompt. It only yields the usage of a call without content and
// without a finish reason.
function isBlocked({ step, textCount, calls, usage, finishReason }: Translation): boolean {
  const silent = step === 'closed' && textCount === 0 && calls.size === 0
  return silent && usage.current !== undefined && finishReason === undefined
}

// Clients abandon the stream at the error chunk, so the metadata comes first.
function createErrorChunks(state: Translation, error: TurnError): Chunk[] {
  return [
    { type: 'message-metadata', messageMetadata: { ...readMetadata(state), error } },
    { type: 'error', errorText: error.message },
  ]
}

function readMetadata({ usage, modelVersion, citations, audio }: Translation): MessageMetadata {
  const total = totalUsage(usage)
  return {
    ...(total && { usage: total }),
    ...(modelVersion !== undefined && { modelVersion }),
    ...(citations.length > 0 && { citations }),
    ...(audio && { audio }),
  }
}
