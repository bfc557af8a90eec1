import type { Bridge } from './bridge.ts'
import { BRIDGE_MODULES } from './bridge-modules.ts'
import { openBridge } from './open-bridge.ts'
import type { AnyBridgeOptions } from './options.ts'

export type { AuditRecord } from '../approvals/audit-entry.ts'
export type { ApprovalPolicy, PolicyCall, PolicyVerdict } from '../approvals/policy.ts'
export { browserTool, planTool } from './bridge-modules.ts'
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
export type { Bridge } from './bridge.ts'
export { isAllowedHost } from './http/hosts-and-proxies.ts'
export type { BridgeOptions, SeveralAgentsOptions } from './options.ts'
export type { SignInOptions, SignInProvider } from '../modules/sign-in/sign-in-options.ts'
export type { CallAddress } from './routes/call-completion.ts'

/** Connects an ADK agent, or several, to AI SDK clients. Throws a `TypeError` if an option is invalid. */
export function createBridge(options: AnyBridgeOptions): Bridge {
  return openBridge(options, BRIDGE_MODULES)
}
