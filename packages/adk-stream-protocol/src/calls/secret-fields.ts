import { isRecord } from '../protocol/guards.ts'
import { toLatinLetter } from '../shared/literal-text.ts'

/** Whether a field of an answer asks for a secret, such as a password, a card number or a token. */
export function isSecretField(name: string, field: unknown): boolean {
  if (isSecretName(name)) return true
  if (!isRecord(field)) return false
  const { title, format, description } = field
  if (typeof format === 'string' && format.toLowerCase() === 'password') return true
  if (typeof title === 'string' && isSecretName(title)) return true
  return typeof description === 'string' && isFreeText(field) && isAboutSecret(description)
}

/** Whether the words above a form ask for a secret. They do not if no field can take one, as with a choice. */
export function asksForSecret(message: string, fields: readonly unknown[]): boolean {
  return fields.some(isFreeText) && clausesOf(message).some((clause) => ASKED.test(clause))
}

/** Whether a person can type anything into a field. */
function isFreeText(field: unknown): boolean {
  if (!isRecord(field)) return false
  const { type, enum: choices, oneOf, anyOf } = field
  const isChoice = [choices, oneOf, anyOf].some((each) => each !== undefined)
  return !isChoice && (type === 'string' || type === 'number' || type === 'integer')
}

/** Words that mean a secret in any text. Latin letters without accents, in lower case. */
const ENGLISH_WORDS = [
  String.raw`pass ?(?:word|wd|phrase|code|key)s?(?! ?less)|pwd|cv[vc]2?|one time (?:code|pin)|[tmi]?otp`,
  '(?:security|verification|login|recovery|backup) codes?|seed phrase|(?:credit |debit |bank )?card (?:number|no)',
  '(?:api|access|private|secret|signing|encryption|recovery|ssh) ?keys?',
  '(?:access|api|auth|authentication|bearer|refresh|session|security) ?token|client ?secret|pin ?(?:code|number)',
]

const OTHER_WORDS = [
  // German
  '(?:pass|kenn)wort|geheimzahl|pin ?nummer|kartennummer|kreditkartennummer|kartenpruf(?:nummer|ziffer)|prufziffer',
  '(?:sicherheits|zugangs|bestatigungs)code|(?:api|zugangs|zugriffs|geheim)[ -]?(?:schlussel|token)|(?:privater?|geheimer?) schlussel',
  // French
  'mots? ?de ?passe|mdp|code (?:secret|pin|confidentiel|de securite|de verification)|numero de (?:la |votre |ta )?carte',
  'cles? (?:d ?)?(?:api|secretes?|privees?|acces)|jeton (?:d ?acces|api)|cryptogramme',
  // Spanish
  'contrasenas?|clave (?:secreta|privada|api|de (?:acceso|api))|numero de (?:la |su |tu )?tarjeta|codigo (?:de seguridad|de verificacion|secreto|pin)',
  // Italian
  'parola d ?ordine|numero (?:della |di )?carta|codice (?:segreto|pin|di sicurezza|di verifica)|chiave (?:api|segreta|privata|di accesso)',
  // Portuguese
  'senhas?|palavra ?passe|numero do (?:seu )?cartao|codigo (?:de seguranca|de verificacao|secreto)|chave (?:secreta|privada|(?:de |da )?(?:api|acesso))',
  // Dutch
  'wachtwoord(?:en)?|pincode|toegangscode|toegangstoken|kaartnummer|beveiligingscode|(?:geheime|prive|api) ?sleutel',
]

/** Words that have other meanings too. They mean a secret as the name of a field, or where the person is asked for theirs. */
const SHORT_WORDS =
  'pin|secret|token|credentials?|clave|jeton|geheim(?:nis)?|secreto|segreto|segredo|gettone'

/** The same in scripts without spaces between words. */
const UNSPACED_WORDS = [
  // Japanese
  'パスワード|パスコード|パスフレーズ|暗証|カード番号|セキュリティ(?:コード|番号)|秘密鍵|秘密の(?:答|質問)|シークレット|(?<!最大)トークン(?!数)|(?:API|アクセス)キー|(?:認証|確認)コード|ワンタイム|PIN(?:番号|コード)',
  // Chinese
  '密[码碼]|口令|暗[码碼]|密[钥鑰]|金[钥鑰]|私[钥鑰]|令牌|[权權]杖|卡[号號]|安全[码碼]|[验驗][证證][码碼]',
  // Korean
  '비밀 ?번호|암호(?!화)|패스 ?(?:워드|코드)|핀 ?번호|카드 ?번호|보안 ?코드|토큰(?! ?수)|시크릿|(?:비밀|개인|API|액세스) ?키|인증 ?(?:번호|코드)',
]

const UNSPACED = new RegExp(UNSPACED_WORDS.join('|'), 'i')
/** Compounds such as `Benutzerpasswort` have the word at their end. */
const CLEAR = String.raw`(?:\b(?:${[...ENGLISH_WORDS, ...OTHER_WORDS].join('|')})|\w(?:password|passwort|kennwort|wachtwoord))\b`
const NAME = new RegExp(String.raw`${CLEAR}|\b(?:${SHORT_WORDS})\b`)

const POSSESSIVE =
  'your|my|ihre?n?|deine?n?|votre|vos|ton|ta|su|tu|il tuo|la tua|suo|sua|seu|teu|tua|uw|jouw|je'
const ASKING = `${POSSESSIVE}|enter|type|provide|give|send|tell|paste|input|confirm|need|require|what is`
const YOURS = String.raw`\b(?:${ASKING})(?: \w+){0,2} (?:${SHORT_WORDS})\b`
/** `The user whose password is reset` asks for a user. */
const NOT_ASKED = String.raw`(?<!\b(?:whose|without|no|reset|forgot|forgotten|change) (?:the |a |your )?)`

const DESCRIBED = new RegExp(`${NOT_ASKED}${CLEAR}|${YOURS}|${UNSPACED.source}`, 'i')
/** English is asked for with a verb or a possessive, or the word stands almost alone. Other words are rarely used otherwise. */
const ASKED = new RegExp(
  [
    String.raw`\b(?:${ASKING})(?: \w+){0,3} ${CLEAR}`,
    String.raw`^(?:\w+ )?${CLEAR}(?: \w+){0,2}$`,
    String.raw`\b(?:${OTHER_WORDS.join('|')})\b`,
    YOURS,
    UNSPACED.source,
  ].join('|'),
  'i',
)

function isSecretName(name: string): boolean {
  const text = reveal(name)
  const words = toWords(text.replaceAll(/(?<=[\p{Ll}\d])(?=\p{Lu})/gu, ' '))
  return [words, toWords(text), replaceDigits(text)].some(
    (each) => NAME.test(each) || UNSPACED.test(each),
  )
}

function isAboutSecret(text: string): boolean {
  return clausesOf(text).some((clause) => DESCRIBED.test(clause))
}

const REFUSAL =
  /\b(?:do not|don t|dont|never) (?:ever )?(?:give|enter|share|send|provide|type|include|use|tell|reveal|paste|write)\b(?:(?!\b(?:but|instead|however)\b).)*/g

/** Returns the clauses of a text, as words and as words with digits for letters. Leaves out what a person is told not to enter. */
function clausesOf(text: string): string[] {
  return reveal(text)
    .split(/[.;!?:()。！？；：（）\n]/)
    .flatMap((clause) => [toWords(clause), replaceDigits(clause)])
    .map((clause) => clause.replaceAll(REFUSAL, ''))
}

/** Returns words in lower case, without accents and punctuation. Letters that stand alone in a row are one word. */
function toWords(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
    .replaceAll(/\b(?:[a-z] ){2,}[a-z]\b/g, (letters) => letters.replaceAll(' ', ''))
}

const DIGITS: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
}

/** Returns words such as `p4ssw0rd` with letters. */
function replaceDigits(text: string): string {
  return toWords(text.replaceAll(/[013457@$]/g, (digit) => DIGITS[digit] ?? digit))
}

/** Returns a text without invisible characters, accents and letters of other scripts that look like Latin ones. */
function reveal(text: string): string {
  const visible = text
    .normalize('NFKC')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu, '')
    .normalize('NFD')
    .replaceAll(/(?<=\p{Script=Latin})\p{M}+/gu, '')
    .normalize('NFC')
  return Array.from(visible, toLatinLetter).join('')
}
