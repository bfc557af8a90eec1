export type { ApprovalPolicy, PolicyCall, PolicyVerdict } from '../approvals/policy.ts'
export { browserTool } from '../calls/browser-tool.ts'
export { callAddress, idempotencyKey } from '../agent/tool-call.ts'
export { ProtocolError } from '../protocol/errors.ts'
export type { Preview } from '../protocol/preview.ts'
export {
  anyOf,
  apiKey,
  type Authenticate,
  type AuthenticateRequest,
  type Principal,
  signedCookie,
} from './auth/authenticate.ts'
export type { LiveOptions } from './chats/live-conversations.ts'
export { type Bridge, createBridge } from './create-bridge.ts'
export { type AllowedHosts, isAllowedHost } from './http/hosts-and-proxies.ts'
export type { BridgeLimits } from './limits.ts'
export type { BridgeOptions, SeveralAgentsOptions } from './options.ts'
export type { AuditPage, AuditQuery } from './routes/audit-and-timeline.ts'
export type {
  ApiKeyProvider,
  OAuthProvider,
  SignInOptions,
  SignInProvider,
} from './sign-in/sign-in-options.ts'
export type { CallAddress } from './routes/call-completion.ts'
