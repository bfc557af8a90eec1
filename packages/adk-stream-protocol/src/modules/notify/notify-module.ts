import { setImmediate } from 'node:timers/promises'

import * as z from 'zod'

import { ProtocolError } from '../../protocol/errors.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import { toDecider } from '../../server/chats/decisions/decision-results.ts'
import { reply } from '../../server/http/exchange.ts'
import type { Route } from '../../server/http/http-router.ts'
import type { LogOptions } from '../../server/operations/operations.ts'
import { toLog } from '../../server/operations/operations.ts'
import type { Store } from '../../store/store.ts'
import { requirePart } from '../../store/store.ts'
import type { NoticeStore, StoredNotice } from '../../store/tables/notices.ts'
import type { Core, OpenModule } from '../module.ts'
import type { FastApprovalsOptions, NotifyOptions } from './notice.ts'
import { addressRoutes } from './channel-addresses.ts'
import { channelRoutes, listenToChannels } from './channel-routes.ts'
import { Notifier } from './notifier.ts'
import type { NoticeBody } from './plan-notices.ts'

/** The option of `createBridge` for notices. */
export interface NotifyBridgeOptions {
  /**
   * Tells people about approvals: who, by which channel, when, and when again. Notices are sent at least once, also after a restart, and
   * in order for each approval. Default: nobody is told.
   */
  readonly notify?: NotifyOptions
}

const isFunction = (value: unknown): boolean => typeof value === 'function'

const Notify = z.strictObject({
  channels: z.record(
    z.string().regex(/^[\w-]{1,64}$/, { error: 'a name of letters, digits, _ and -' }),
    z.looseObject({
      send: z.custom(isFunction, { error: 'a function' }),
      receive: z.custom(isFunction, { error: 'a function' }).optional(),
      addresses: z.looseObject({ read: z.custom(isFunction, { error: 'a function' }) }).optional(),
      listen: z.custom(isFunction, { error: 'a function' }).optional(),
      mayApprove: z.custom(isFunction, { error: 'a function' }).optional(),
      address: z.string().optional(),
    }),
  ),
  plan: z.custom(isFunction, { error: 'a function' }).optional(),
  fastApprovals: z
    .strictObject({
      tell: z.string().optional(),
      to: z.string().max(500).optional(),
      decisions: z.number().int().min(2).max(200).optional(),
      withinMs: z.number().min(1).max(3_600_000).optional(),
    } satisfies Record<keyof FastApprovalsOptions, z.ZodType>)
    .optional(),
} satisfies Record<keyof NotifyOptions, z.ZodType>)

export const NotifyBridgeOptionsSchema = { notify: Notify.optional() }

/** Notices about approvals. */
export const openNotify: OpenModule<NotifyBridgeOptions & LogOptions> = ({
  notify,
  log,
  onError,
}) => {
  if (!notify) return { createRoutes: noticeRoutes }
  const { channels, fastApprovals } = notify
  const told = fastApprovals?.tell
  if (told !== undefined && !Object.hasOwn(channels, told))
    throw new TypeError(
      `createBridge: \`notify.fastApprovals\` names the channel ${told}, which is not in \`notify.channels\`.`,
    )
  const writeLog = toLog(log, onError)
  let notifier: Notifier | undefined
  let core: Core | undefined
  let stopListening: (() => Promise<void>) | undefined
  return {
    openKinds: (store) => {
      noticesOf(store)
      if (fastApprovals || Object.values(channels).some(({ addresses }) => addresses))
        requirePart(store, 'personalRecords', RECORDS_NEEDED)
      return []
    },
    start: ({ ledger, store, refresh, substitutes }) => {
      notifier = new Notifier({
        ...notify,
        store: noticesOf(store),
        records: store.personalRecords,
        onFast: (decidedBy, { decisions, fast, withinMs }) =>
          writeLog({
            level: 'warn',
            event: 'approver.fast',
            message: `A person has approved each of their last ${decisions} calls, ${fast} of them within ${withinMs} ms.`,
            decidedBy,
            count: fast,
          }),
        ledger,
        refresh,
        substitutes,
        worker: ledger.worker,
        onError,
      })
      // A decided call starts in the same turn of the event loop, before the record is read and notices are stored.
      ledger.onChange(() => void setImmediate().then(() => notifier?.wake()))
      stopListening = core && listenToChannels(core, notify)
    },
    // Notices of other processes, and those whose time has come.
    sweep: async () => notifier?.wake(),
    createRoutes: (parts) => {
      core = parts
      return [
        ...noticeRoutes(parts),
        ...channelRoutes(parts, notify),
        ...addressRoutes(parts, notify),
      ]
    },
    close: async () => {
      await stopListening?.()
      await notifier?.close()
    },
  }
}

const RECORDS_NEEDED = '`fastApprovals` and channels with `addresses` need'

const noticesOf = (store: Store): NoticeStore => requirePart(store, 'notices', '`notify` needs')

/** The endpoint that says who was told of an approval. */
function noticeRoutes({ backend }: Core): Route[] {
  return [
    {
      method: 'GET',
      path: '/approvals/:id/notices',
      handle: async ({ principal, id }) => {
        const { ledger, store, appName } = await backend.get()
        if (!(await ledger.get(id, toDecider(principal))))
          throw new ProtocolError('unknown-approval')
        const notices = (await store.notices?.list(appName, id)) ?? []
        return reply(200, { notices: notices.flatMap(view) })
      },
    },
  ]
}

/** What a receiver answered, and how fast a person approves, is for the operator only. */
function view({ body, channel, state, at, attempts }: StoredNotice): Record<string, unknown>[] {
  // The bridge wrote it.
  const { type, to } = JSON.parse(body) as NoticeBody
  if (type === 'approver.fast') return []
  return [{ type, channel, ...withoutUndefined({ to }), state, at, attempts }]
}
