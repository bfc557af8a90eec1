import type { Event } from '@google/adk'

import type { LiveMessage } from './live-message.ts'

/** Keeps the sources of an answer from the answers after it: ADK 2.0.0 never forgets what it was once told an answer rests on. */
export class FreshSources {
  readonly #owners = new WeakMap<object, LiveMessage>()

  /** Whether an event holds sources of this message, or of one that nobody knows yet. */
  has({ groundingMetadata }: Event, message: LiveMessage | undefined): boolean {
    if (!groundingMetadata || !message) return false
    return (this.#owners.get(groundingMetadata) ?? message) === message
  }

  /** The event as it is told in a message: with sources of that message alone. */
  keep(event: Event, message: LiveMessage): Event {
    if (!event.groundingMetadata) return event
    if (this.has(event, message)) {
      this.#owners.set(event.groundingMetadata, message)
      return event
    }
    const { groundingMetadata: _, ...rest } = event
    return rest
  }
}
