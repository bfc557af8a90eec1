import { DefaultChatTransport, isToolUIPart, readUIMessageStream } from 'ai'
import type { UIMessage } from 'ai'

import { Browser } from '../../../packages/adk-stream-protocol/test/support/browser.ts'

/** Requests a payment, as the page of a quick start does, and approves or denies it. Returns the message before and after. */
export async function payOnce(
  url: string,
  approved = true,
): Promise<[pending: UIMessage, completed: UIMessage]> {
  const browser = new Browser(url)
  const transport = new DefaultChatTransport({ api: `${url}/stream`, fetch: browser.fetch })
  const request: UIMessage = {
    id: 'request',
    role: 'user',
    parts: [{ type: 'text', text: 'Send $30 to Alice' }],
  }
  const send = async (...messages: UIMessage[]): Promise<UIMessage> => {
    const stream = await transport.sendMessages({
      chatId: 'chat',
      messageId: undefined,
      trigger: 'submit-message',
      abortSignal: undefined,
      messages,
    })
    let message = messages.findLast(({ role }) => role === 'assistant')
    // Without `terminateOnError`, an error of the server looks like the end of the reply.
    const reading = { stream, terminateOnError: true, ...(message && { message }) }
    for await (const next of readUIMessageStream(reading)) message = next
    if (!message) throw new Error('The server sent no reply.')
    return message
  }
  const pending = await send(request)
  if (!pending.parts.some((part) => isToolUIPart(part) && part.state === 'approval-requested'))
    throw new Error(`No approval is pending: ${JSON.stringify(pending)}`)
  return [pending, await send(request, decide(pending, approved))]
}

/** Returns the message with the decision, as `addToolApprovalResponse` changes it. */
function decide(message: UIMessage, approved: boolean): UIMessage {
  const parts = message.parts.map((part): UIMessage['parts'][number] => {
    if (!isToolUIPart(part) || part.state !== 'approval-requested') return part
    return {
      ...part,
      state: 'approval-responded',
      approval: { id: part.approval.id, approved },
    }
  })
  return { ...message, parts }
}

/** Returns the tool parts of a message as name, state and output. */
export function callsOf({ parts }: UIMessage): unknown[] {
  return parts
    .filter(isToolUIPart)
    .map((part) => [part.type, part.state, ...(part.output === undefined ? [] : [part.output])])
}
