import { ProtocolError } from '../../protocol/errors.ts'
import type { ModelCalls } from '../chats/model-calls.ts'
import { reply } from '../http/exchange.ts'
import type { Route } from '../http/http-router.ts'

/** The route of recorded model calls, for the owner of the chat. Without a recorder there is none. */
export function modelCallRoutes(modelCalls: ModelCalls | undefined): readonly Route[] {
  if (!modelCalls) return []
  return [
    {
      method: 'GET',
      path: '/chats/:id/model-calls/:name',
      handle: async ({ principal, id: chatId, name }) => {
        const call = modelCalls.find({ principalId: principal.id, chatId }, name)
        if (!call) throw new ProtocolError('not-found')
        return reply(200, call)
      },
    },
  ]
}
