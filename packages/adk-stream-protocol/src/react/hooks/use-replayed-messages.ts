import type { UIMessage } from 'ai'
import { useState } from 'react'

import { isBusy } from '../../client/sync/attachable-chat.ts'

/**
 * After a lost connection, the AI SDK reads a reply again from its first chunk. Returns the messages as they were until it has read as
 * much as before. Otherwise, the cards of the reply would be removed and created again, and a click at that moment would be lost.
 */
export function useReplayedMessages<Message extends UIMessage>(
  messages: Message[],
  status: string,
): Message[] {
  const [drawn, setDrawn] = useState(messages)
  const shown = isBusy({ status }) && isBehind(messages, drawn) ? drawn : messages
  // React renders the hook again before it renders the components.
  if (shown !== drawn) setDrawn(shown)
  return shown
}

/** Whether the last message is the beginning of the one that was drawn before. */
function isBehind(messages: readonly UIMessage[], drawn: readonly UIMessage[]): boolean {
  const [now, before] = [messages.at(-1), drawn.at(-1)]
  if (!now || !before || now === before) return false
  if (now.id !== before.id || messages.length !== drawn.length) return false
  const pairs = now.parts.map((part, index) => [part, before.parts[index]] as const)
  if (!pairs.every(([part, other]) => part.type === other?.type && idOf(part) === idOf(other)))
    return false
  return (
    now.parts.length < before.parts.length || pairs.some(([part, other]) => isLess(part, other))
  )
}

type Part = UIMessage['parts'][number]

function idOf(part: Part): string | undefined {
  return 'toolCallId' in part ? part.toolCallId : undefined
}

const BEFORE_CALL = ['input-streaming', 'input-available']

function isLess(part: Part, other: Part | undefined): boolean {
  if (!other) return false
  if ('text' in part && 'text' in other)
    return part.text.length < other.text.length && other.text.startsWith(part.text)
  if (!('toolCallId' in part) || !('toolCallId' in other)) return false
  const step = BEFORE_CALL.indexOf(part.state)
  const drawnStep = BEFORE_CALL.indexOf(other.state)
  return step >= 0 && (drawnStep < 0 || step < drawnStep)
}
