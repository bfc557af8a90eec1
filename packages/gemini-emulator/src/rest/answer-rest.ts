import type { IncomingMessage, ServerResponse } from 'node:http'

import type { RequestLog } from '../request-log.ts'
import type { World } from '../world.ts'

export interface Exchange {
  readonly world: World
  readonly log: RequestLog
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export async function answerRest({ response }: Exchange): Promise<void> {
  response.writeHead(501).end()
  await Promise.resolve()
}
