import { WebSocketChatTransport } from 'ai-7'

/** The transport of AI SDK 7. The build for that version puts this file in the place of `live-transport.ts`. */
export function openLiveTransport() {
  const url = new URL('/live', location.href)
  url.protocol = 'ws:'
  return new WebSocketChatTransport({ url: url.href })
}
