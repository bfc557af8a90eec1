import type { AgentInfo } from '../../studio-info.ts'

/** The prices of models in US dollars per million tokens. */
export type TokenPrices = Readonly<
  Record<string, { readonly input: number; readonly output: number }>
>

/** What the cost of model calls is estimated from. */
export interface Tariff {
  readonly prices: TokenPrices
  /** Returns the model of an agent, for calls whose reply does not name it. */
  readonly modelOf: (agent: string | undefined) => string | undefined
}

/** A model call and its tokens. */
export interface PricedCall {
  readonly agent?: string | undefined
  /** The model, if its reply has named it. */
  readonly model?: string | undefined
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number } | undefined
}

/** Returns the tariff of a chat with an agent. `model` is that of agents whose own is not known. */
export function createTariff(
  prices: TokenPrices,
  agent: AgentInfo | undefined,
  model: string | undefined,
): Tariff {
  const models = new Map(agent?.graph?.nodes.map((node) => [node.name, node.model]))
  return { prices, modelOf: (name = '') => models.get(name) ?? model }
}

/** Estimates the cost of model calls in US dollars. Undefined if the price or the tokens of one of them are not known. */
export function estimateCost(
  calls: readonly PricedCall[],
  { prices, modelOf }: Tariff,
): number | undefined {
  if (calls.length === 0) return undefined
  return calls.reduce<number | undefined>((sum, { usage, model, agent }) => {
    const price = findPrice(model ?? modelOf(agent) ?? '', prices)
    if (sum === undefined || !usage || !price) return undefined
    const { inputTokens, outputTokens } = usage
    return sum + (inputTokens * price.input + outputTokens * price.output) / 1_000_000
  }, 0)
}

/** Versions such as `gemini-2.5-flash-001` have the price of the longest name that they start with. */
function findPrice(model: string, prices: TokenPrices): TokenPrices[string] | undefined {
  const [name] = Object.keys(prices)
    .filter((each) => model === each || model.startsWith(`${each}-`))
    .toSorted((one, other) => other.length - one.length)
  return name === undefined ? undefined : prices[name]
}

/** Writes an estimated cost. */
export function formatCost(cost: number, locale: string): string {
  const amount = { style: 'currency', currency: 'USD', maximumFractionDigits: 4 } as const
  return `≈ ${cost.toLocaleString(locale, amount)}`
}
