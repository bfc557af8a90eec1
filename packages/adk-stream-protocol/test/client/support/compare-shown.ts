import { isDeepStrictEqual } from 'node:util'

import type { ChatMessage, ChatPart } from '../../support/chat-probe.ts'

/** Returns how the messages of a tab differ from the stored ones, or undefined. */
export function findDifference(
  shown: readonly ChatMessage[],
  stored: readonly ChatMessage[],
): string | undefined {
  const [ids, storedIds] = [shown, stored].map((messages) => messages.map(({ id }) => id))
  if (!isDeepStrictEqual(ids, storedIds))
    return `shows ${ids?.join()}; stored: ${storedIds?.join()}`
  for (const [index, message] of stored.entries()) {
    const [seen, expected] = [summarise(shown[index] ?? message), summarise(message)]
    if (!isDeepStrictEqual(seen, expected))
      return `shows ${JSON.stringify(seen)}; stored: ${JSON.stringify(expected)}`
  }
  return undefined
}

/** Whether a call of a message has no outcome. */
export function hasOpenCall({ parts }: ChatMessage): boolean {
  return parts.some(
    ({ toolCallId, state }) => toolCallId !== undefined && !state?.startsWith('output-'),
  )
}

/** Everything that a person sees of a message. */
function summarise({ id, role, parts, metadata }: ChatMessage): unknown {
  const { stopped = false, error } = (metadata ?? {}) as {
    stopped?: boolean
    error?: { code: string }
  }
  const shown = parts.filter(({ type }) => type !== 'step-start').map(summarisePart)
  return JSON.parse(JSON.stringify({ id, role, parts: shown, stopped, error: error?.code }))
}

function summarisePart(part: ChatPart): unknown {
  const { type, text, toolCallId, input, output, state, errorText, data } = part
  if (toolCallId === undefined) return { type, text, data }
  const { approval } = part as { approval?: { id: string; approved?: boolean; reason?: string } }
  return { type, toolCallId, input, output, state, errorText, approval }
}
