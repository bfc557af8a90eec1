import { expect, test } from 'vitest'

import {
  createTariff,
  estimateCost,
  type PricedCall,
  type TokenPrices,
} from '../src/page/inspector/cost.ts'
import { ModelPrices } from '../src/studio-info.ts'

test('[IN381] the cost of a turn is estimated from the prices of its models, if all are known', () => {
  const usage = { inputTokens: 1_000, outputTokens: 500, totalTokens: 1_500 }
  const call = (model: string) =>
    ({ type: 'model', id: model, messageId: 'm', at: 0, model, usage }) as const
  const node = { id: 'n', kind: 'agent' as const }
  const nodes = [{ ...node, name: 'clerk', model: 'gemini-2.5-flash-lite' }]
  const AGENT = { name: 'clerk', tools: [], graph: { nodes, edges: [] } }
  const prices = {
    'gemini-2.5-flash': { input: 0.3, output: 2.5 },
    'gemini-2.5-flash-lite': { input: 0.1, output: 0.4 },
  }
  const cost = (calls: readonly PricedCall[], model?: string, known: TokenPrices = prices) =>
    estimateCost(calls, createTariff(known, AGENT, model))
  expect(cost([call('gemini-2.5-flash')])).toBeCloseTo(0.00155)
  expect(cost([call('gemini-2.5-flash-001')])).toBeCloseTo(0.00155)
  expect(cost([call('gemini-2.5-flash-lite-001')])).toBeCloseTo(0.0003)
  expect(cost([call('gemini-2.5-flash'), call('gemini-2.5-flash')])).toBeCloseTo(0.0031)
  expect(cost([call('gemini-2.5-flash'), call('other')])).toBeUndefined()
  expect(cost([{ ...call('gemini-2.5-flash'), usage: undefined }])).toBeUndefined()
  expect(cost([])).toBeUndefined()
  expect(cost([call('gemini-2.5-flash')], undefined, {})).toBeUndefined()
  // A reply that does not name its model.
  expect(cost([{ agent: 'clerk', usage }])).toBeCloseTo(0.0003)
  expect(cost([{ agent: 'other', usage }], 'gemini-2.5-flash')).toBeCloseTo(0.00155)
  expect(cost([{ usage }])).toBeUndefined()
})

test('[IN381] prices are read from a text', () => {
  expect(ModelPrices.parse('gemini-2.5-flash=0.30/2.50, other=1/2')).toEqual({
    'gemini-2.5-flash': { input: 0.3, output: 2.5 },
    other: { input: 1, output: 2 },
  })
  for (const text of ['', 'gemini', 'gemini=1', 'gemini=a/b', 'gemini=1/2,'])
    expect(ModelPrices.safeParse(text).error?.issues[0]?.message).toMatch(
      /^is not a list of prices/,
    )
})
