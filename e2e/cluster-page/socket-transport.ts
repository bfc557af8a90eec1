import { webSocketTransport } from 'adk-stream-protocol/client'

/** AI SDK 6 has no WebSocket transport, so its page uses the one of the library. */
export function openSocketTransport() {
  return webSocketTransport({ url: '/live', hold: false })
}
