import * as z from 'zod'

import type { ApprovalStore, AuditHead, AuditVerification } from '../../approvals/approval-store.ts'
import { repeat } from '../../server/chats/recovery/repeat.ts'
import { Method } from '../../server/settings/option-schemas.ts'
import type { OpenModule } from '../module.ts'

/** The option of `createBridge` for the head of the audit record. */
export interface AuditHeadBridgeOptions {
  /**
   * Receives the newest entry of the audit record, to keep its hash outside the database, for example in a log that cannot be changed. With it,
   * `audit verify --head` finds a record that was rewritten as a whole. Default: nobody receives it.
   */
  readonly auditHead?: AuditHeadOptions
}

/**
 * Options for the head of the audit record.
 *
 * @inline
 */
interface AuditHeadOptions {
  /** Called with the newest entry, if there is a new one. If it throws or rejects, it is called again after `everyMs`. */
  readonly report: (head: AuditHead) => unknown
  /** The interval, in ms. Default: one hour. */
  readonly everyMs?: number
}

const HOUR_MS = 3_600_000

export const AuditHeadBridgeOptionsSchema = {
  auditHead: z
    .strictObject({
      report: Method,
      everyMs: z
        .number({ error: 'a number of milliseconds' })
        .min(1_000)
        .max(2 ** 31 - 1)
        .optional(),
    } satisfies Record<keyof AuditHeadOptions, z.ZodType>)
    .optional(),
}

/** Reports the head of the audit record at an interval. */
export const openAuditHead: OpenModule<AuditHeadBridgeOptions> = ({ auditHead, onError }) => {
  if (!auditHead) return {}
  const { report, everyMs = HOUR_MS } = auditHead
  let stop: (() => Promise<void>) | undefined
  return {
    openKinds: ({ approvals }) => {
      checkStore(approvals)
      return []
    },
    start: ({ store: { approvals } }) => {
      let reported: string | undefined
      stop = repeat(everyMs, async () => {
        try {
          const { head } = await verify(approvals)
          if (!head || head.hash === reported) return
          await report(head)
          reported = head.hash
        } catch (error) {
          onError(error)
        }
      })
    },
    close: async () => stop?.(),
  }
}

async function verify(approvals: ApprovalStore): Promise<AuditVerification> {
  checkStore(approvals)
  return approvals.verifyAudit({ newest: 1 })
}

function checkStore(
  approvals: ApprovalStore,
): asserts approvals is ApprovalStore & Required<Pick<ApprovalStore, 'verifyAudit'>> {
  if (approvals.verifyAudit) return
  throw new TypeError(
    'createBridge: `auditHead` needs a store with `verifyAudit`. Those of openSqliteStore and openPostgresStore have it.',
  )
}
