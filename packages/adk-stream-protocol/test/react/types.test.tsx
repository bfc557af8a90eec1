import { FunctionTool } from '@google/adk'
import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

import type {
  AdkUIMessage,
  InferAdkTools,
  WebSocketTransport,
  SseTransport,
} from '../../src/client/index.ts'
import type { AdkChat, Inbox } from '../../src/react/index.ts'
import { useBrowserTools } from '../../src/react/index.ts'
import { browserTool } from '../../src/server/index.ts'
import type { AnyChatTransport } from '../../src/react/hooks/use-chat-instance.ts'
import type { BrowserToolsOf } from '../../src/react/hooks/use-browser-tools.ts'
import type { ApprovalInboxProps } from '../../src/react/components/approval-inbox.tsx'
import type { MessageListProps } from '../../src/react/components/message-list.tsx'

const Payment = z.object({ amount: z.number(), recipient: z.string().default('花子') })
const payment = {
  name: 'process_payment',
  description: 'Pays somebody.',
  parameters: Payment,
  execute: ({ amount }: z.infer<typeof Payment>) => Promise.resolve({ balance: 1_000 - amount }),
} as const
const location = {
  name: 'get_location',
  description: 'Where the person is.',
  parameters: z.object({ precise: z.boolean().optional() }),
  output: z.object({ latitude: z.number(), longitude: z.number() }),
} as const

test('[RE19] the tools of messages are those that the agent declares', () => {
  const declared = [payment, location] as const
  // The same declarations create the tools.
  expect([new FunctionTool(payment).name, browserTool(location).name]).toEqual(
    declared.map(({ name }) => name),
  )
  type Tools = InferAdkTools<typeof declared>
  expectTypeOf<Tools['process_payment']['input']>().toEqualTypeOf<{
    amount: number
    recipient: string
  }>()
  expectTypeOf<Tools['process_payment']['output']>().toEqualTypeOf<{ balance: number }>()
  expectTypeOf<Tools['get_location']['output']>().toEqualTypeOf<{
    latitude: number
    longitude: number
  }>()
  expectTypeOf<InferAdkTools<{ pay: typeof payment }>['pay']['output']>().toEqualTypeOf<{
    balance: number
  }>()
  type Part = Extract<
    AdkUIMessage<Tools>['parts'][number],
    { type: 'tool-process_payment'; state: 'output-available' }
  >
  expectTypeOf<Part['output']>().toEqualTypeOf<{ balance: number }>()
})

test('[RE19] a browser tool carries its types, and a FunctionTool says that it does not', () => {
  const tool = browserTool(location)
  const untyped = browserTool({
    name: 'read_page',
    description: 'Reads the page.',
    parameters: z.object({}),
  })
  const declared = [tool, untyped, payment] as const
  expect(declared.map(({ name }) => name)).toEqual(['get_location', 'read_page', 'process_payment'])
  type Tools = InferAdkTools<typeof declared>
  expectTypeOf<keyof Tools>().toEqualTypeOf<'get_location' | 'read_page' | 'process_payment'>()
  expectTypeOf<Tools['get_location']>().toEqualTypeOf<{
    input: { precise?: boolean | undefined }
    output: { latitude: number; longitude: number }
  }>()
  expectTypeOf<Tools['read_page']['output']>().toEqualTypeOf<unknown>()
  expectTypeOf<Tools['process_payment']['output']>().toEqualTypeOf<{ balance: number }>()
  expectTypeOf<InferAdkTools<{ locate: typeof tool }>['locate']['output']>().toEqualTypeOf<{
    latitude: number
    longitude: number
  }>()

  const instance = new FunctionTool(payment)
  expect(instance.name).toBe('process_payment')
  type Instance = InferAdkTools<{ pay: typeof instance }>['pay']
  expectTypeOf<Instance['input']>().toExtend<`A FunctionTool does not carry its types. ${string}`>()
  expectTypeOf<Instance['output']>().toEqualTypeOf<Instance['input']>()
  // Its name is any string. The other tools of the list keep their types.
  const mixed = [tool, instance] as const
  expect(mixed).toHaveLength(2)
  type Mixed = InferAdkTools<typeof mixed>
  expectTypeOf<Mixed['process_payment']>().toEqualTypeOf<Instance>()
  expectTypeOf<Mixed['get_location']>().toEqualTypeOf<Tools['get_location']>()
})

test('[RE19] browser tools have the input and output types of the messages', () => {
  type Tools = InferAdkTools<readonly [typeof payment, typeof location]>
  type Functions = BrowserToolsOf<Tools>
  type Locate = Extract<Functions['get_location'], (...given: never[]) => unknown>
  expectTypeOf<Parameters<Locate>[0]>().toEqualTypeOf<{ precise?: boolean | undefined }>()
  expectTypeOf<{ latitude: number; longitude: number }>().toExtend<ReturnType<Locate>>()
  const use = (chat: AdkChat<Tools>) => {
    useBrowserTools(chat.attached, {
      get_location: ({ precise }) => ({ latitude: precise ? 1.5 : 1, longitude: 2 }),
    })
    // @ts-expect-error: it gives a position.
    useBrowserTools(chat.attached, { get_location: () => 'here' })
    // @ts-expect-error: there is no such tool.
    useBrowserTools(chat.attached, { get_weather: () => 'sunny' })
  }
  expect(use).toBeTypeOf('function')
})

test('[RE19] every transport is accepted, and the list accepts the result of the hook', () => {
  type Tools = InferAdkTools<readonly [typeof payment]>
  expectTypeOf<WebSocketTransport>().toExtend<AnyChatTransport<Tools>>()
  expectTypeOf<SseTransport>().toExtend<AnyChatTransport<Tools>>()
  expectTypeOf<AdkChat<Tools>>().toExtend<NonNullable<MessageListProps['chat']>>()
  expectTypeOf<Inbox>().toExtend<NonNullable<ApprovalInboxProps['inbox']>>()
})
