import { WebSocketChatTransport } from 'ai-7'

/** The transport of AI SDK 7. The build for that version replaces `socket-transport.ts` with this file. */
export function openSocketTransport() {
  const url = new URL('/live', location.href)
  url.protocol = 'ws:'
  return new WebSocketChatTransport({ url: url.href })
}
