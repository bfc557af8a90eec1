import { expectTypeOf, test } from 'vitest'
import type { ChatTransport as ChatTransport6 } from 'ai'
import type { ChatTransport as ChatTransport7 } from 'ai-7'
import type { WebSocket as NodeSocket } from 'ws'

import type { AdkUIMessage, WebSocketTransport, SseTransport } from '../../src/client/index.ts'
import type { Message } from '../../src/protocol/index.ts'
import type { SocketClass } from '../../src/client/socket/reconnecting-socket.ts'

type Tools = { pay: { input: { amount: number }; output: { balance: number } } }
type Part = AdkUIMessage<Tools>['parts'][number]

test('[CL16] the parts of a message are typed: tools by a parameter, data and metadata by the protocol', () => {
  type Pay = Extract<Part, { type: 'tool-pay'; state: 'output-available' }>
  expectTypeOf<Pay['input']>().toEqualTypeOf<{ amount: number }>()
  expectTypeOf<Pay['output']>().toEqualTypeOf<{ balance: number }>()
  type Approval = Extract<Part, { type: 'data-approval' }>
  expectTypeOf<Approval['data']['state']>().toEqualTypeOf<
    'requested' | 'approved' | 'denied' | 'expired' | 'cancelled' | 'unknown'
  >()
  type Metadata = NonNullable<AdkUIMessage['metadata']>
  expectTypeOf<Metadata['usage']>().toEqualTypeOf<NonNullable<Message['metadata']>['usage']>()
})

test('[CL16] the transports have the types of AI SDK 6 and 7, and accept the sockets of Node and of browsers', () => {
  expectTypeOf<WebSocketTransport>().toExtend<ChatTransport6<AdkUIMessage>>()
  expectTypeOf<SseTransport>().toExtend<ChatTransport6<AdkUIMessage>>()
  expectTypeOf<WebSocketTransport>().toExtend<ChatTransport7<AdkUIMessage>>()
  expectTypeOf<SseTransport>().toExtend<ChatTransport7<AdkUIMessage>>()
  expectTypeOf<typeof NodeSocket>().toExtend<SocketClass>()
  expectTypeOf<typeof WebSocket>().toExtend<SocketClass>()
})
