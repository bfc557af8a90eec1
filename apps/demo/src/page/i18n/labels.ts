import type { Mode, Theme } from '../settings.ts'
import type { ShortcutName } from '../shell/shortcuts.ts'

/** All labels of the page in one language. */
export interface Labels {
  readonly title: string
  readonly tagline: string
  readonly intro: string
  readonly newChat: string
  readonly skipToInput: string
  readonly placeholder: string
  readonly reload: string
  readonly latest: string
  readonly loading: string
  readonly unreadableTitle: string
  readonly unreadableText: string
  readonly missingTitle: string
  readonly missingText: string
  readonly suggestionsLabel: string
  readonly calls: CallLabels
  /** The card of the weather. Temperatures are in degrees Celsius. */
  readonly weather: {
    readonly degrees: (value: number) => string
    readonly feelsLike: (value: number) => string
    /** In percent. */
    readonly humidity: (value: number) => string
    /** In metres per second. */
    readonly wind: (value: number) => string
    /** The values are not measured. */
    readonly sample: string
    /** The names of conditions, in lower case. */
    readonly conditions: Readonly<Record<string, string>>
  }
  readonly shell: ShellLabels
  readonly music: {
    readonly track: (track: number) => string
    readonly mute: (track: number) => string
  }
}

/** Labels of the demo's tools. */
export interface CallLabels {
  /** The language in which amounts of money are written. */
  readonly language: 'en' | 'ja'
  /** What a call will do, and what it did. */
  readonly descriptions: {
    readonly payment: (money: string, recipient: string) => string
    readonly paid: (money: string, recipient: string) => string
    readonly notPaid: (money: string, recipient: string) => string
    readonly location: string
    readonly located: string
    readonly notLocated: string
    readonly notes: (count: number) => string
    readonly notesDeleted: (count: number) => string
    readonly trip: (place: string, nights: number, price: string) => string
    readonly tripBooked: (place: string, nights: number, price: string) => string
  }
  /** Display names of tools and agents. */
  readonly names: Readonly<Record<string, string>>
  /** Display names of arguments. */
  readonly argumentNames: Readonly<Record<string, string>>
}

/** A starting point of an empty chat. `text` is sent. */
interface Start {
  readonly title: string
  readonly explanation: string
  readonly text: string
}

/** A group of suggestions in an empty chat. */
export interface SuggestionGroup {
  readonly title: string
  /** The group is shown on request. */
  readonly isMore?: true
  readonly suggestions: readonly Suggestion[]
}

export interface Suggestion {
  readonly text: string
  /** The suggestion opens the file picker first. */
  readonly needsPicture?: true
  /** The suggestion needs a page that can sign in. */
  readonly needsSignIn?: true
  /** The modes that support it. Default: all. A live model cannot wait for an approval inside another agent. */
  readonly modes?: readonly Mode[]
}

/** Labels of the page around the conversation. */
interface ShellLabels {
  readonly close: string
  readonly cancel: string
  readonly chats: {
    readonly label: string
    readonly show: string
    readonly hide: string
    readonly search: string
    readonly none: string
    readonly noneFound: string
    readonly today: string
    readonly earlier: string
    readonly running: string
    readonly pending: (count: number) => string
    readonly options: (title: string) => string
    readonly rename: string
    readonly newName: string
    readonly delete: string
    readonly deleteTitle: string
    readonly deleteText: (title: string) => string
    readonly problems: Readonly<Record<'list' | 'rename' | 'delete', string>>
    readonly untitled: string
  }
  readonly mode: {
    readonly label: string
    readonly names: Readonly<Record<Mode, string>>
    /** The modes in the words of developers. */
    readonly connection: string
    readonly connections: Readonly<Record<Mode, string>>
    readonly explanations: Readonly<Record<Mode, string>>
  }
  /** The mark of the server instance that responded last. */
  readonly instance: { name(name: string): string; readonly explanation: string }
  readonly inspector: {
    readonly title: string
    readonly show: string
    readonly hide: string
    readonly messages: string
  }
  readonly settings: {
    readonly title: string
    readonly language: string
    readonly theme: string
    readonly themes: Readonly<Record<Theme, string>>
    readonly notifications: string
    readonly notificationsOff: string
    readonly notificationsOn: string
    /** The browser does not allow notifications. */
    readonly notificationsBlocked: string
    readonly music: string
    readonly musicOff: string
    readonly shortcuts: string
    /** The services that the person has signed in to. */
    readonly signIns: string
    readonly signedInAs: (service: string, account: string) => string
    readonly signOut: (service: string) => string
    readonly signedOut: (service: string) => string
    /** The credential is deleted here, and the service did not confirm that it is invalid. */
    readonly notRevoked: (service: string) => string
    readonly notSignedOut: string
  }
  readonly shortcuts: {
    readonly title: string
    readonly names: Readonly<Record<ShortcutName | 'send' | 'newLine' | 'close', string>>
  }
  readonly composer: {
    readonly attach: string
    readonly pictures: string
    readonly remove: (name: string) => string
    readonly drop: string
    readonly problems: {
      readonly type: (name: string) => string
      readonly size: (name: string, maxMegabytes: number) => string
      readonly total: (name: string) => string
      readonly count: (max: number) => string
      readonly unreadable: (name: string) => string
    }
  }
  readonly actions: {
    readonly copy: string
    readonly copied: string
    readonly failed: string
    readonly edit: string
    readonly editLabel: string
    readonly editHint: string
    /** The server refuses to replace the message. */
    readonly editLocked: string
    readonly cancel: string
    readonly resend: string
  }
  readonly voice: {
    readonly needsLive: string
    readonly backToChat: string
    readonly captions: string
    readonly microphone: string
    /** Shown while there is no connection. */
    readonly emulated: string
  }
  /** Labels of the model. */
  readonly model: {
    readonly label: string
    readonly emulated: string
  }
  /** Labels of the second approver of large payments. */
  readonly approver: {
    readonly is: string
    readonly how: string
    /** The title of the dialog that asks for the code. */
    readonly title: string
    readonly code: string
    readonly enter: string
    readonly wrong: string
  }
  /** The page with pending and decided approvals. */
  readonly approvalsPage: {
    readonly title: string
    /** Returns to the chat that is open behind the page. */
    readonly back: string
    /** The title of the page that a link to one approval opens. */
    readonly linkTitle: string
    /** The link to the page. */
    readonly open: string
    /** The link from an approval to its chat. */
    readonly openChat: (title: string) => string
    readonly keys: string
  }
  readonly starts: {
    readonly payment: Start
    readonly twoPeople: Start
    readonly talk: Omit<Start, 'text'>
  }
  /** Shows the other groups of suggestions. */
  readonly moreSuggestions: string
  readonly suggestions: readonly SuggestionGroup[]
}
