import type { PluginTexts, PluginMode } from 'adk-stream-protocol-studio/page'

/** The texts of the demo in one language. */
export interface DemoLabels {
  /** The texts of the page that the demo replaces. */
  readonly page: Required<PluginTexts>
  /** What a call will do, and what it did. */
  readonly descriptions: {
    readonly payment: (money: string, recipient: string) => string
    readonly paid: (money: string, recipient: string) => string
    readonly notPaid: (money: string, recipient: string) => string
    readonly plan: (payments: number) => string
    readonly location: string
    readonly located: string
    readonly notLocated: string
    readonly notes: (count: number) => string
    readonly notesDeleted: (count: number) => string
    readonly trip: (place: string, nights: number, price: string) => string
    readonly tripBooked: (place: string, nights: number, price: string) => string
  }
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
  readonly music: {
    readonly label: string
    readonly off: string
    readonly track: (track: number) => string
    readonly mute: (track: number) => string
  }
  /** Gemini without the agent. */
  readonly direct: PluginMode['texts']['en']
  /** Labels of the second approver of large payments. */
  readonly approver: {
    readonly cancel: string
    readonly is: string
    readonly how: string
    /** The title of the dialog that asks for the code. */
    readonly title: string
    readonly code: string
    readonly enter: string
    readonly wrong: string
  }
}
