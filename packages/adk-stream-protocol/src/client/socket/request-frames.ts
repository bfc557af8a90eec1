import type { MessageView } from '../sync/response-states.ts'
import type { SocketRequest, RequestFrame } from './socket-request.ts'
import type { WireTrigger } from '../transports/wire-events.ts'

/** Whether a request that was cut off shows in the messages that the server has. */
export function isAnswered(
  { state, frame, messageId }: SocketRequest,
  known: readonly string[],
): boolean {
  if (state === 'healing') return messageId !== undefined && known.includes(messageId)
  if (frame.type === 'resume') return true
  // What is made anew takes the place of what was there; what was said is there in any case.
  if (frame.trigger === 'regenerate-message') return !known.includes(frame.messageId ?? '')
  return known.includes(sentMessage(frame)?.id ?? '')
}

/** What a request asks, as an observer sees it. */
export function describeRequest(frame: RequestFrame): {
  trigger: WireTrigger
  message?: MessageView | undefined
  messageId?: string | undefined
} {
  if (frame.type === 'resume') return { trigger: 'resume' }
  const { trigger = 'submit-message', messageId } = frame
  return { trigger, message: sentMessage(frame), messageId: messageId ?? undefined }
}

function sentMessage(frame: RequestFrame): MessageView | undefined {
  // The transport made the frame, of messages of the chat.
  return frame.type === 'send' ? (frame.messages.at(-1) as MessageView | undefined) : undefined
}
