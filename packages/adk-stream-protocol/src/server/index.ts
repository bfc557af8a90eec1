export type { BrowserToolOptions } from '../calls/browser-tool.ts'
export { browserTool } from '../calls/browser-tool.ts'
export { callAddress } from '../calls/call-ids.ts'
export { idempotencyKey } from '../calls/call-ids.ts'
export type { ApprovalPolicy, PolicyVerdict, PolicyCall } from '../approvals/policy.ts'
export { ProtocolError } from '../protocol/errors.ts'
export type { AllowedHosts } from './http/hosts-and-origins.ts'
export { isAllowedHost } from './http/hosts-and-origins.ts'
export { apiKey } from './auth/authenticate.ts'
export type { Authenticate, AuthenticateRequest, Principal } from './auth/authenticate.ts'
export { anyOf } from './auth/authenticate.ts'
export type { AuditPage, AuditQuery } from './routes/audit-routes.ts'
export type {
  CallAddress,
  CallCompletion,
  CompletableCall,
  MayCompleteCalls,
} from './routes/call-completion.ts'
export type { AgentChoice, ChooseAgent, RootAgent } from './chats/chat-agents.ts'
export type { Bridge, CloseOptions } from './create-bridge.ts'
export { createBridge } from './create-bridge.ts'
export type {
  BridgeLimits,
  BridgeOptions,
  SeveralAgentsOptions,
  TurnInfo,
  TurnRunConfig,
} from './options.ts'
export type { TrustedProxies } from './http/trusted-proxies.ts'
export type { ContextInput, ContextOptions } from './chats/request-context.ts'
export type { SignedCookieOptions } from './auth/signed-cookie.ts'
export { signedCookie } from './auth/signed-cookie.ts'
