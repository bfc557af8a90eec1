import type { RequestHandlers } from '../../../src/relay/server-requests.ts'

async function refuse(): Promise<never> {
  throw new Error('These tests send no such request.')
}

/** The handlers of a server that others do not ask. */
export const REFUSE_REQUESTS: RequestHandlers = {
  'stop-chat': refuse,
  'stop-asking': refuse,
  'stop-turn': refuse,
  'live-opened': refuse,
  'release-live': refuse,
  'live-decided': refuse,
  'live-holds': refuse,
  'live-output': refuse,
}
