import { z } from 'zod'

import type { Body, Chunk, Part } from './small-backend.ts'

/** The small backend in AG-UI: its requests and its chunks, translated. */

const Call = z.object({ id: z.string(), function: z.object({ arguments: z.string() }) })

const Input = z.object({
  threadId: z.string(),
  runId: z.string(),
  messages: z.array(
    z.looseObject({
      role: z.string(),
      content: z.unknown().optional(),
      toolCalls: z.array(Call).optional(),
    }),
  ),
  resume: z
    .array(
      z.object({ interruptId: z.string(), status: z.string(), payload: z.unknown().optional() }),
    )
    .default([]),
})

/** An interrupt has the id of the call. */
const ID = /^approve:/

/** Returns the request that a client of the AI SDK would have sent. */
export function readRunInput(body: unknown): Body | undefined {
  const input = Input.safeParse(body).data
  if (!input) return undefined
  const { threadId, messages, resume } = input
  const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls)
  const decided = resume.map(({ interruptId, payload }): Part => {
    const toolCallId = interruptId.replace(ID, '')
    const call = calls.find(({ id }) => id === toolCallId)
    return {
      type: 'tool-pay',
      state: 'approval-responded',
      toolCallId,
      input: JSON.parse(call?.function.arguments ?? '{}') as { key?: string },
      approval: { approved: z.object({ approved: z.literal(true) }).safeParse(payload).success },
    }
  })
  const text = String(messages.at(-1)?.content)
  const parts = decided.length > 0 ? decided : [{ type: 'text', text }]
  return { id: threadId, messages: [{ role: 'user', parts }] }
}

/** Returns the run that the chunks are. */
export function toRunEvents(chunks: readonly Chunk[], body: unknown): object[] {
  const { threadId, runId } = Input.parse(body)
  const messageId = crypto.randomUUID()
  const started = { type: 'RUN_STARTED', threadId, runId }
  const events = chunks.flatMap((chunk) => toEvents(chunk, messageId))
  if (chunks.some(({ type }) => type === 'error')) return [started, ...events]
  const [asked] = chunks.filter(({ type }) => type === 'tool-approval-request')
  const { toolCallId } = asked ?? {}
  const interrupt = { id: `approve:${toolCallId}`, reason: 'tool_call', toolCallId }
  const outcome = asked && { outcome: { type: 'interrupt', interrupts: [interrupt] } }
  const finished = { type: 'RUN_FINISHED', threadId, runId, ...outcome }
  const shown = chunks.findIndex(({ type }) => type === 'tool-input-available')
  // The request before the call: the run has ended when the call is shown.
  const isBroken = asked !== undefined && chunks.indexOf(asked) < shown
  return isBroken ? [started, finished, ...events] : [started, ...events, finished]
}

function toEvents(chunk: Chunk, messageId: string): object[] {
  const { type, toolCallId } = chunk
  switch (type) {
    case 'text-start':
      return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }]
    case 'text-delta':
      return [{ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: chunk['delta'] }]
    case 'text-end':
      return [{ type: 'TEXT_MESSAGE_END', messageId }]
    case 'tool-input-available':
      return [
        { type: 'TOOL_CALL_START', toolCallId, toolCallName: chunk['toolName'] },
        { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(chunk['input']) },
        { type: 'TOOL_CALL_END', toolCallId },
      ]
    case 'tool-output-available':
    case 'tool-output-denied': {
      const content = JSON.stringify(chunk['output'] ?? { denied: true })
      return [{ type: 'TOOL_CALL_RESULT', messageId: `${toolCallId}.result`, toolCallId, content }]
    }
    case 'error':
      return [{ type: 'RUN_ERROR', message: chunk['errorText'] }]
    default:
      return []
  }
}
