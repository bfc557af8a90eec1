export type { AdkApi, ApprovalPaging, DecisionGiven, LoadedChat } from './api/adk-api.ts'
export { adkApi } from './api/adk-api.ts'
export { AdkError } from './adk-error.ts'
export type { AdkDataParts, AdkUIMessage } from './adk-ui-message.ts'
export type { AttachedChat, AttachOptions } from './sync/attached-chat.ts'
export { attachChat } from './sync/attached-chat.ts'
export type { AttachableChat } from './sync/attachable-chat.ts'
export type { Backoff } from '../shared/backoff.ts'
export type { BrowserToolFunction, BrowserTools, GatedBrowserTool } from './tools/browser-tools.ts'
export { runBrowserTools } from './tools/browser-tools.ts'
export type {
  Connected,
  ConnectionListener,
  ConnectionState,
} from './transports/connection-state.ts'
export { readErrorMessage } from './adk-error.ts'
export type { HttpOptions } from './api/http.ts'
export type { InferAdkTools } from './tools/infer-tools.ts'
export type { AudioMode, LiveEvent, LiveListener } from './socket/chat-subscriptions.ts'
export type {
  WebSocketTransport,
  WebSocketTransportOptions,
} from './transports/web-socket-transport.ts'
export { webSocketTransport } from './transports/web-socket-transport.ts'
export type { AgentOption } from './transports/name-agent.ts'
export type { Pace } from './recording/pacing.ts'
export type { Playback, PlaybackOptions, MessageTarget } from './recording/play-recording.ts'
export { playRecording } from './recording/play-recording.ts'
export type { PlayerOptions } from './recording/player.ts'
export { Player } from './recording/player.ts'
export type { AnyTransport, RecordedLine } from './recording/recording.ts'
export { readRecording, Recorder } from './recording/recording.ts'
export type { ChatSummary, ListEvent } from '../protocol/server-views.ts'
export type {
  ApprovalPage,
  ApprovalRecord,
  ChatEvent,
  PendingApproval,
} from '../protocol/server-views.ts'
export type { SocketClass, SocketLike } from './socket/reconnecting-socket.ts'
export type { SseTransport, SseTransportOptions } from './transports/sse-transport.ts'
export { sseTransport } from './transports/sse-transport.ts'
export type { WatchEvent, WatchListener, WatchOptions } from './api/watch-feed.ts'
export type { WireEvent, WireObserver, WireTrigger } from './transports/wire-events.ts'
