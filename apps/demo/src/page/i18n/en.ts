import { enShell } from './shell/en-shell.ts'
import type { Labels } from './labels.ts'

export const en: Labels = {
  title: 'ADK Stream Protocol',
  tagline: 'What would you like to do?',
  intro: 'Approve what an agent does: exactly once, from anywhere, even while you talk.',
  newChat: 'New chat',
  skipToInput: 'Skip to the message input',
  placeholder: 'Ask something…',
  reload: 'Reload the page',
  latest: 'Go to the latest message',
  loading: 'Loading the chat…',
  unreadableTitle: 'The chat could not be loaded',
  unreadableText: 'Check your network and try again.',
  missingTitle: 'Chat not found',
  missingText: 'It was deleted, or it belongs to another browser.',
  suggestionsLabel: 'Suggestions',
  calls: {
    language: 'en',
    descriptions: {
      payment: (money, recipient) => `Send ${money} to ${recipient}`,
      paid: (money, recipient) => `Sent ${money} to ${recipient}`,
      notPaid: (money, recipient) => `Not sent: ${money} to ${recipient}`,
      location: 'Share your location with the assistant',
      located: 'Shared your location with the assistant',
      notLocated: 'Location not shared',
      trip: (place, nights, price) => `Book ${nights} nights in ${place} for ${price}`,
      tripBooked: (place, nights, price) => `Booked ${nights} nights in ${place} for ${price}`,
      notes: (count) => (count === 1 ? 'Delete 1 note' : `Delete ${count} notes`),
      notesDeleted: (count) => (count === 1 ? 'Deleted 1 note' : `Deleted ${count} notes`),
    },
    argumentNames: {
      amount: 'Amount',
      recipient: 'Recipient',
      currency: 'Currency',
      description: 'Description',
      titles: 'Titles',
      place: 'Place',
      nights: 'Nights',
      price: 'Price',
    },
  },
  shell: enShell,
  music: {
    track: (track) => `Track ${track}`,
    mute: (track) => `Mute track ${track}`,
  },
}
