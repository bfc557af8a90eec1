import { setTimeout as delay } from 'node:timers/promises'

import type { ApprovalStore } from '../../approvals/approval-store.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { describeFault } from '../../store/audit-chain.ts'
import { StoreError } from '../../store/store-error.ts'
import type { Store } from '../../store/store.ts'
import type { LazyBackend } from '../chats/backend.ts'
import type { Reply } from '../http/exchange.ts'
import { reply, withHeaders } from '../http/exchange.ts'
import type { Route } from '../http/http-router.ts'
import { LIVE_PATH } from '../http/http-router.ts'

interface HealthOptions {
  readonly audit: AuditCheck
  readonly onError: (error: unknown) => void
  /** Whether this package is tested with the installed version of ADK. */
  readonly isAdkTested: boolean
}

/** The routes that need no principal: the service, its health and readiness, and the hint to upgrade at the socket's path. */
export function healthRoutes(
  readiness: Readiness,
  { audit, onError, isAdkTested }: HealthOptions,
): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/',
      access: 'public',
      handle: () => reply(200, { service: 'adk-stream-protocol', status: 'running' }),
    },
    {
      method: 'GET',
      path: '/health',
      access: 'public',
      handle: () => reply(200, { status: 'healthy' }),
    },
    {
      method: 'GET',
      path: '/ready',
      access: 'public',
      handle: async () => {
        const failed = await readiness.check()
        if (failed) return refuse(failed, onError)
        await audit.untilEnded()
        const warnings = [
          ...(audit.isTampered() ? ['audit'] : []),
          ...(isAdkTested ? [] : ['adk-version']),
        ]
        return reply(200, { status: 'ready', ...(warnings.length > 0 && { warnings }) })
      },
    },
    {
      method: 'GET',
      path: LIVE_PATH,
      access: 'public',
      handle: () => {
        const error = new ProtocolError('upgrade-required')
        return withHeaders(reply(error.status, error), { upgrade: 'websocket' })
      },
    },
  ]
}

/** Responds to a probe with the name of the failed check. The cause goes to `onError` only. */
function refuse({ name, cause, fault }: FailedCheck, onError: (error: unknown) => void): Reply {
  if (cause !== undefined) onError(cause)
  const storeError = fault ?? (cause instanceof StoreError ? cause : undefined)
  const body = { status: 'not-ready', check: name, ...(storeError && { reason: storeError.code }) }
  if (storeError?.isLasting === true)
    return reply(503, { ...body, ...new ProtocolError('store-failed').toJSON() })
  const retryAfterSeconds = 5
  const error = new ProtocolError('unavailable', { retryAfterSeconds })
  const headers = { 'retry-after': String(retryAfterSeconds) }
  return withHeaders(reply(503, { ...body, ...error.toJSON() }), headers)
}

/** How long the checks may take before the server counts as not ready. */
const TIMEOUT_MS = 5_000

/** Checks that the server can serve requests: its store can be opened and read, its agents can run, and the bridge is not closing. */
export interface Readiness {
  /** Returns the check that failed, or undefined if the server is ready. Never rejects. */
  check(): Promise<FailedCheck | undefined>
  close(): void
}

interface FailedCheck {
  /** A stable word for probes and alerts. */
  readonly name: 'closing' | 'store' | 'audit' | 'agent'
  readonly cause?: unknown
  /** A lasting error of the store that was found before. It was reported then. */
  readonly fault?: StoreError
}

export interface ReadinessOptions {
  readonly store: { readonly get: () => Promise<Pick<Store, 'approvals'>> }
  readonly backend: Pick<LazyBackend, 'get'>
  readonly timeoutMs?: number
  /** Returns the lasting error of the store, if there is one. A read cannot find every one. */
  readonly fault: () => StoreError | undefined
  /** Called with the result of each check of the store. */
  readonly onChecked: (error?: unknown) => void
}

export function createReadiness(options: ReadinessOptions): Readiness {
  const { timeoutMs = TIMEOUT_MS } = options
  /** The running check. Concurrent requests share it, even if it takes longer than they wait for it. */
  let checking: Promise<FailedCheck | undefined> | undefined
  let step: FailedCheck['name'] = 'store'
  let isClosed = false

  const runChecks = async (): Promise<FailedCheck | undefined> => {
    try {
      step = 'store'
      // A read that no store delays because of running turns.
      await (await options.store.get()).approvals.lastSeq()
      options.onChecked()
      const fault = options.fault()
      if (fault) return { name: nameFault(fault), fault }
      step = 'agent'
      await options.backend.get()
      return undefined
    } catch (cause) {
      if (step === 'store') options.onChecked(cause)
      return { name: cause instanceof StoreError ? nameFault(cause) : step, cause }
    }
  }
  return {
    async check() {
      if (isClosed) return { name: 'closing' }
      checking ??= runChecks().finally(() => (checking = undefined))
      const abort = new AbortController()
      try {
        const timeout = delay(timeoutMs, 'timeout' as const, { signal: abort.signal })
        timeout.catch(() => undefined)
        const result = await Promise.race([checking, timeout])
        if (result !== 'timeout') return result
        return {
          name: step,
          cause: new Error(`The check of the ${step} took over ${timeoutMs} ms.`),
        }
      } finally {
        abort.abort()
      }
    },
    close() {
      isClosed = true
    },
  }
}

function nameFault({ code }: StoreError): FailedCheck['name'] {
  return code === 'tampered' ? 'audit' : 'store'
}

/** How many of the newest entries the bridge checks when it starts. The audit command checks all entries. */
const NEWEST = 1_000
/** How long a probe waits for that check, in ms. */
const WAIT_MS = 1_000

/** Checks, when the store is opened, whether another program changed the audit record. */
export interface AuditCheck {
  isTampered(): boolean
  /** Resolves when the check has ended, whatever it has found, or after a second: turns may use all connections of the store. */
  untilEnded(): Promise<void>
  /** Checks the record. With `refuse` it rejects if the record was changed; with `report` it checks in the background. */
  check(store: ApprovalStore): Promise<void>
}

export function createAuditCheck(
  whenTampered: 'report' | 'refuse',
  onError: (error: unknown) => void,
  waitMs = WAIT_MS,
): AuditCheck {
  let isTampered = false
  let ended = Promise.resolve()
  const verify = async (store: ApprovalStore): Promise<void> => {
    const { fault } = (await store.verifyAudit?.({ newest: NEWEST })) ?? {}
    if (!fault) return
    isTampered = true
    throw new StoreError('tampered', describeFault(fault))
  }
  return {
    isTampered: () => isTampered,
    untilEnded: () => Promise.race([ended, delay(waitMs, undefined, { ref: false })]),
    async check(store) {
      const checked = verify(store)
      ended = checked.catch(() => undefined)
      if (whenTampered === 'refuse') return checked
      checked.catch(onError)
    },
  }
}
