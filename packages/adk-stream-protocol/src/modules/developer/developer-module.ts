import * as z from 'zod'

import type { OpenModule } from '../module.ts'
import { reply } from '../../server/http/exchange.ts'
import { describeAgents } from './describe-agents.ts'
import { requireThisMachine, sessionRoutes } from './session-routes.ts'

/** The option of `createBridge` for developers. */
export interface DeveloperBridgeOptions {
  /**
   * For development: lets the owner of a chat, on this machine only, read its ADK session with the raw events and the whole state,
   * change the state, list its artifacts, and import a session from a file. Also describes the agents and their tools (`GET /agents`). Refused if `NODE_ENV` is `production`. Default false.
   */
  readonly developer?: boolean
}

export const DeveloperBridgeOptionsSchema = {
  developer: z.boolean({ error: 'true or false' }).optional(),
}

/** Endpoints with which a developer looks into the sessions of chats. */
export const openDeveloper: OpenModule<DeveloperBridgeOptions> = ({
  developer = false,
  ...settings
}) => {
  if (!developer) return {}
  if (typeof process === 'object' && process.env['NODE_ENV'] === 'production')
    throw new TypeError(
      'createBridge: `developer` is for development. Remove it if `NODE_ENV` is `production`.',
    )
  return {
    createRoutes: (core) => [
      ...sessionRoutes(core),
      {
        method: 'GET',
        path: '/agents',
        handle: async ({ exchange }) => {
          requireThisMachine(exchange)
          return reply(200, { agents: describeAgents(settings) })
        },
      },
    ],
  }
}
