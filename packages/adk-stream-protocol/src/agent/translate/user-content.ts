import type { Content, Part } from '@google/genai'

import type { MessagePart } from '../../protocol/message.ts'
import type { UserMessage, UserPart } from '../../protocol/stream-request.ts'

/** Converts a user message to ADK content. */
export function toUserContent(message: UserMessage): Content {
  return { role: 'user', parts: message.parts.map(toPart) }
}

function toPart(part: UserPart): Part {
  if (part.type === 'text') return { text: part.text }
  const { mediaType: mimeType, data, filename: displayName } = part
  return { inlineData: { mimeType, data, ...(displayName !== undefined && { displayName }) } }
}

/** Returns the parts of a stored user event as clients show them. */
export function readUserContent(content: Content | undefined): MessagePart[] {
  return (content?.parts ?? []).flatMap((part): MessagePart[] => {
    if (part.text !== undefined) return [{ type: 'text', text: part.text }]
    if (!part.inlineData?.data) return []
    const { mimeType: mediaType = 'application/octet-stream', data, displayName } = part.inlineData
    const url = `data:${mediaType};base64,${data}`
    return [
      { type: 'file', mediaType, url, ...(displayName !== undefined && { filename: displayName }) },
    ]
  })
}
