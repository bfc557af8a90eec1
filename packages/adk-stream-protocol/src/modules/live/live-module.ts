import { z } from 'zod'

import { isObject } from '../../protocol/guards.ts'
import { readCallState } from '../../server/chats/host/stored-calls.ts'
import type { LiveOptions } from './live-conversations.ts'
import { createConversationStarter } from './live-conversations.ts'
import { openLiveLeases } from './live-leases.ts'
import { LiveOwners } from './live-owners.ts'
import { LiveRuns } from './live-runs.ts'
import { openLiveSender } from './live-sender.ts'
import { ApprovalDeadline, Duration, Service } from '../../server/settings/option-schemas.ts'
import { openTurnHandlers } from '../../server/sockets/frame-handlers.ts'
import { openLiveHandlers, refuseLiveFrames } from './live-handlers.ts'
import type { CoreSettings, RunsModule } from '../module.ts'
import { toChatRuns } from './live-chat-runs.ts'

/** The option of `createBridge` for live sessions. */
export interface LiveBridgeOptions {
  /** Enables Gemini Live sessions on `WS /live`, in text and speech. Default: a socket works like `POST /stream`. */
  readonly live?: LiveOptions
}

export const LiveBridgeOptionsSchema = {
  live: z
    .strictObject({
      model: z
        .custom((value) => typeof value === 'string' || isObject(value), {
          error: 'the name of a live model, or a Gemini model of ADK',
        })
        .optional(),
      // ADK checks this object.
      runConfig: Service.optional(),
      approvalDeadlineMs: ApprovalDeadline.optional(),
      graceMs: Duration.optional(),
    } satisfies Record<keyof LiveOptions, z.ZodType>)
    .optional(),
}

/** Sessions with a live model, which hears and speaks, and stays connected between messages. */
export function openLive({
  live: options,
  agents,
  onError,
}: CoreSettings & LiveBridgeOptions): RunsModule {
  return {
    runsLevel: ['live_session.active', '{session}', 'Open Gemini Live sessions.'],
    openRuns: (core) => {
      const { backend, servers, events, limits } = core
      const leases = openLiveLeases({ backend, servers, onError })
      const { graceMs = 60_000 } = options ?? {}
      const runs =
        options &&
        new LiveRuns({
          ...core,
          leases,
          prepareConversation: createConversationStarter({ ...options, ...core, agents, graceMs }),
          maxPerPrincipal: limits.maxLiveChatsPerPrincipal,
          graceMs,
        })
      const owners = new LiveOwners({
        backend,
        callState: async (call) => readCallState(await backend.get(), call),
        runs,
        servers,
        leases,
        events,
        onDecided: core.onDecidedElsewhere,
      })
      servers.handle(...owners.handlers)
      return {
        runs: toChatRuns({ ...core, runs, owners, leases }),
        openHandlers: (parts) => {
          if (!runs)
            return (connection) => ({
              ...openTurnHandlers(connection, parts),
              ...refuseLiveFrames(),
            })
          const live = openLiveSender({
            ...parts,
            runs,
            whenOwnerOpened: (chat) => owners.whenOpened(chat),
          })
          return (connection) => openLiveHandlers(connection, { ...parts, runs, live })
        },
      }
    },
  }
}
