import type { ApprovalStore } from '../../approvals/approval-store.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { describeFault } from '../../store/sqlite/audit-command.ts'
import { StoreError } from '../../store/store-error.ts'
import { reply, withHeaders } from '../http/exchange.ts'
import type { Route } from '../http/http-router.ts'
import { LIVE_PATH } from '../http/http-router.ts'

/** The routes that need no principal: the service, its health and readiness, and the hint to upgrade at the socket's path. */
export function healthRoutes(readiness: Readiness, audit: AuditCheck): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/',
      public: true,
      handle: () => reply(200, { service: 'adk-stream-protocol', status: 'running' }),
    },
    {
      method: 'GET',
      path: '/health',
      public: true,
      handle: () => reply(200, { status: 'healthy' }),
    },
    {
      method: 'GET',
      path: '/ready',
      public: true,
      handle: async () => {
        await readiness.check()
        return reply(200, { status: 'ready', ...(audit.isTampered() && { warnings: ['audit'] }) })
      },
    },
    {
      method: 'GET',
      path: LIVE_PATH,
      public: true,
      handle: () => {
        const error = new ProtocolError('upgrade-required')
        return withHeaders(reply(error.status, error), { upgrade: 'websocket' })
      },
    },
  ]
}

/** How long the database may take to answer before the server counts as not ready. */
const TIMEOUT_MS = 5_000

/** Checks that the server can serve requests: its database can be opened and read, and the bridge is not closing. */
export interface Readiness {
  /** Rejects if the server is not ready. */
  check(): Promise<void>
  close(): void
}

export function createReadiness(read: () => Promise<unknown>): Readiness {
  /** The running check. Concurrent requests share it. */
  let checking: Promise<void> | undefined
  let isClosed = false
  return {
    async check() {
      if (isClosed) throw new ProtocolError('unavailable')
      checking ??= readInTime(read).finally(() => (checking = undefined))
      await checking
    },
    close() {
      isClosed = true
    },
  }
}

async function readInTime(read: () => Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    const cause = new Error(`The database did not answer within ${TIMEOUT_MS} ms.`)
    timer = setTimeout(() => reject(cause), TIMEOUT_MS)
  })
  try {
    await Promise.race([read(), timeout])
  } catch (cause) {
    throw new ProtocolError('unavailable', { cause, retryAfterSeconds: 5 })
  } finally {
    clearTimeout(timer)
  }
}

/** How many of the newest entries the bridge checks when it starts. The audit command checks all entries. */
const NEWEST = 1_000

/** Checks, when the store is opened, whether another program changed the audit record. */
export interface AuditCheck {
  isTampered(): boolean
  /** Checks the record. With `refuse` it rejects if the record was changed; with `report` it checks in the background. */
  check(store: ApprovalStore): Promise<void>
}

export function createAuditCheck(
  whenTampered: 'report' | 'refuse',
  onError: (error: unknown) => void,
): AuditCheck {
  let isTampered = false
  const verify = async (store: ApprovalStore): Promise<void> => {
    const { fault } = (await store.verifyAudit?.({ newest: NEWEST })) ?? {}
    if (!fault) return
    isTampered = true
    throw new StoreError('tampered', describeFault(fault))
  }
  return {
    isTampered: () => isTampered,
    async check(store) {
      const checked = verify(store)
      if (whenTampered === 'refuse') return checked
      checked.catch(onError)
    },
  }
}
