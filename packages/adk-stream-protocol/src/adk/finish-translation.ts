import type { Chunk } from '../protocol/chunk.ts'
import type { MessageMetadata } from '../protocol/message.ts'
import { totalUsage } from './count-usage.ts'
import { Telling } from './telling.ts'
import type { Translation } from './translation.ts'
import { isWaiting } from './translation.ts'

/** How the run of a turn ended. */
export type TurnEnd = 'completed' | 'stopped'

/** Closes what is still open and tells how the turn ended. */
export function finishTranslation(state: Translation, end: TurnEnd): Chunk[] {
  const telling = new Telling(state)
  telling.closeText()
  const open = [...state.calls].filter(([, call]) => call.state === 'running')
  for (const [toolCallId] of open) telling.settle(toolCallId, { errorText: NO_RESULT[end] })
  const waiting = isWaiting(state)
  const { answered } = telling.state
  telling.closeStep()
  if (state.error) return [...telling.chunks, ...tellError(state, state.error)]
  // CH4: a message that ends on a tool's result looks unfinished to clients that send automatically. An empty step after it,
  // which the metadata of `finish` makes them see, says that nothing more is owed.
  if (answered && !waiting) telling.chunks.push({ type: 'start-step' }, { type: 'finish-step' })
  if (end === 'stopped') telling.chunks.push({ type: 'abort' })
  telling.chunks.push({
    type: 'finish',
    finishReason: waiting ? 'tool-calls' : state.finishReason,
    messageMetadata: { ...readMetadata(state), ...(end === 'stopped' && { stopped: true }) },
  })
  return telling.chunks
}

const NO_RESULT: Record<TurnEnd, string> = {
  completed: 'The call ended without a result.',
  stopped: 'Stopped before a result came. The call may or may not have taken effect.',
}

// The error chunk makes clients abandon the stream, so all they should know goes before it.
function tellError(state: Translation, error: NonNullable<Translation['error']>): Chunk[] {
  return [
    { type: 'message-metadata', messageMetadata: { ...readMetadata(state), error } },
    { type: 'error', errorText: error.message },
  ]
}

function readMetadata({ usage, modelVersion, citations }: Translation): MessageMetadata {
  const total = totalUsage(usage)
  return {
    ...(total && { usage: total }),
    ...(modelVersion !== undefined && { modelVersion }),
    ...(citations.length > 0 && { citations }),
  }
}
