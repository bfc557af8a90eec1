import { useId } from 'react'

import type { GrantOffer } from '../../protocol/grants.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Arguments } from '../reading/call.ts'

interface GrantOffersProps {
  readonly offers: readonly GrantOffer[] | undefined
  readonly args: Arguments | undefined
  /** Which decision the person is about to make. */
  readonly effect: GrantOffer['effect']
  readonly chosen: string | undefined
  readonly onChoose: (offerId: string | undefined) => void
}

/** The grants that a person can choose with their decision, each in words: what stays the same, how much, how often, until when. */
export function GrantOffers({ offers = [], args, effect, chosen, onChoose }: GrantOffersProps) {
  const labels = useAdkLabels()
  const id = useId()
  const shown = offers.filter((offer) => offer.effect === effect)
  // Without the values, the words would say more than the grant.
  if (shown.length === 0 || !args) return null
  return (
    <div className="adk-grant-offers">
      {shown.map((offer, index) => (
        <p key={offer.id}>
          <input
            type="checkbox"
            id={`${id}-${index}`}
            checked={chosen === offer.id}
            onChange={({ target }) => onChoose(target.checked ? offer.id : undefined)}
          />{' '}
          <label htmlFor={`${id}-${index}`}>
            {offer.effect === 'deny'
              ? labels.grants.offerDenial
              : labels.grants.offer({ ...offer, pinned: describePinned(args, offer) })}
          </label>
        </p>
      ))}
    </div>
  )
}

/** Returns the arguments that stay the same, as a text in one line. */
export function describePinned(
  args: Arguments,
  { free, budget }: Pick<GrantOffer, 'free' | 'budget'>,
): string {
  return Object.entries(args)
    .filter(([name]) => !free.includes(name) && name !== budget?.argument)
    .map(([name, value]) => toLiteral(`${name}: ${formatValue(value)}`))
    .join(', ')
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
