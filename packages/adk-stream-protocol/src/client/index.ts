export { AdkError, readErrorMessage } from './adk-error.ts'
export type { AdkUIMessage, InferAdkTools } from './adk-ui-message.ts'
export {
  type AdkApi,
  adkApi,
  type LoadedChat,
  readApprovalLinkUrl,
  toApprovalLinkUrl,
} from './api/adk-api.ts'
export { type Playback, Player, playRecording } from './recording/play-recording.ts'
export { readRecording, Recorder } from './recording/recording.ts'
export type { WebSocketTransportOptions } from './socket/socket-session.ts'
export type { LiveEvent } from './socket/watched-chats.ts'
export { type AttachedChat, attachChat } from './sync/attached-chat.ts'
export { type BrowserTools, runBrowserTools } from './tools/browser-tools.ts'
export type { ConnectionState } from './connection/connection-state.ts'
export {
  type SseTransport,
  sseTransport,
  type SseTransportOptions,
} from './transports/sse-transport.ts'
export { type WebSocketTransport, webSocketTransport } from './transports/web-socket-transport.ts'
export type { WireEvent } from './connection/wire-events.ts'
export type { ApprovalRecord, ChatSummary, PendingApproval } from '../protocol/server-views.ts'
export type { SignedInService } from '../protocol/sign-in-terms.ts'
export type { Timeline } from '../protocol/timeline.ts'
