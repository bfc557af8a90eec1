import { ProtocolError } from 'adk-stream-protocol/server'
import { safeValidateUIMessages, type ToolSet, type UIMessage } from 'ai'
import { z } from 'zod'

/** A conversation as the AI SDK transport sends it: all messages in every request. */
export interface DirectRequest {
  readonly chatId: string
  readonly messages: UIMessage[]
}

const Body = z.object({
  id: z.string().min(1).max(128),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant']) }))
    .min(1)
    .max(1000),
})

/** Parses a request. Rejects invalid ones, and those with file URLs that the server would fetch. */
export async function readDirectRequest(json: string, tools: ToolSet): Promise<DirectRequest> {
  const body = Body.safeParse(parse(json))
  if (!body.success) throw refused('Send { id, messages } as the AI SDK does.')
  const { id: chatId } = body.data
  // The input types of the tools are checked when they run.
  const checked = await safeValidateUIMessages({
    messages: body.data.messages,
    tools: tools as NonNullable<Parameters<typeof safeValidateUIMessages>[0]['tools']>,
  })
  if (!checked.success) throw refused('The messages are not those of the AI SDK.')
  const messages = checked.data
  if (messages.some(({ parts }) => parts.some(isForeignFile))) {
    throw refused('Send files whole, as data: URLs.')
  }
  return { chatId, messages }
}

// The AI SDK downloads files from any URL that the client sends.
function isForeignFile(part: UIMessage['parts'][number]): boolean {
  return part.type === 'file' && !part.url.startsWith('data:')
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new ProtocolError('malformed-json', { cause })
  }
}

function refused(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}
