/** Templates of planted conversations in Spanish. */
import type { Kit } from './kit.ts';

export const spanish: Kit = {
  language: 'Spanish',
  locale: 'es',
  things: {
    research: [
      ['Molino', 'Instituto', 'Puerto', 'Taller', 'Archivo', 'Convento', 'Teatro', 'Mercado'],
      [' de Arévalo', ' de Quintana', ' de Robledo', ' de Salinas', ' de Valdés', ' de Ibarra'],
    ],
    coding: [
      ['leer', 'vaciar', 'unir', 'dirigir', 'firmar', 'partir', 'ordenar', 'contar'],
      ['Cola', 'Cabecera', 'Sesion', 'Libro', 'Cursor', 'Paquete'],
    ],
    support: [
      ['pedido A-', 'caso T-', 'factura R-', 'paquete P-'],
      ['4711', '2093', '8830', '5127', '6648', '3902', '7215', '1186'],
    ],
    data: [
      ['neto_', 'bruto_', 'diario_', 'bajas_', 'region_', 'grupo_'],
      ['ventas', 'visitas', 'abonos', 'altas', 'margen', 'demora'],
    ],
  },
  phrases: {
    research: [
      'una familia de encuadernadores',
      'la riada del barrio bajo',
      'un préstamo del ayuntamiento',
      'dos herederos enfrentados',
    ],
    coding: [
      'un cerrojo que nadie suelta',
      'un desfase en la última página',
      'una copia vieja de los ajustes',
      'el huso horario equivocado',
    ],
    support: [
      'una etiqueta rota',
      'una tarjeta caducada',
      'un número de portal erróneo',
      'una reserva duplicada',
    ],
    data: [
      'eventos tardíos de la aplicación',
      'filas repetidas de una carga',
      'un cambio de moneda',
      'fines de semana ausentes',
    ],
  },
  numbers: {
    research: ['en 18{d}', '{d} socios', '{d} hectáreas'],
    coding: ['{d} ms', 'la línea {d}', '{d} kB'],
    support: ['{d},50 euros', 'el {d} de mayo', '{d} días'],
    data: ['{d} %', '{d} filas', '{d},4 puntos'],
  },
  goals: [
    'Reúne todo lo que haya sobre {t} y pásamelo por escrito.',
    'Quiero ver claro lo de {t}; échale un vistazo, por favor.',
  ],
  demands: [
    'En lo que reciba un cliente no puede salir {t}.',
    'El total de {t} tiene que quedar por debajo de {n}.',
    'Usa unidades métricas y escribe siempre «{t}».',
    'Pregúntame antes de tocar {t}.',
    'Para {t}, {n} es el tope y no una sugerencia.',
    'no subas lo de {t}, antes quiero verlo yo',
    'Redondea a enteros todo lo de {t}.',
    'Ana lee lo que escribas de {t} antes que nadie.',
  ],
  findings: {
    research: [
      '{t} viene de {p}, diga lo que diga la página oficial.',
      'Según dos fuentes, {t} llegó a tener {n}.',
      'Así que {t} perdió sus derechos por {p}.',
      'La única cifra de {t} en la que coinciden ambos catálogos: {n}.',
      'Detrás de {t} estaba al final {p}.',
      'Las actas dan {n} para {t}.',
    ],
    coding: [
      'El fallo de {t} viene de {p}.',
      '{t} tarda {n}, diez veces lo previsto.',
      'Lo que rompe {t} es {p}.',
      'Todo en {t} depende de {n}.',
      '{t} está bien; el culpable es {p} más arriba.',
      'Medido otra vez: {t} necesita {n}.',
    ],
    support: [
      '{t} quedó parado por {p}.',
      'Por {t} el cliente pagó {n}.',
      'El motivo de {t} es {p}.',
      'Los dos sistemas dan {n} para {t}.',
      'A {t} no le pasa nada salvo {p}.',
      'El socio confirma {n} para {t}.',
    ],
    data: [
      'La caída de {t} es {p}, no la campaña.',
      '{t} se movió {n} entre los dos trimestres.',
      'Lo que deforma {t}: {p}.',
      'Corregido, {t} da {n}.',
      'Antes de marzo no hay que fiarse de {t}, por {p}.',
      'Del filtro salen {n} de {t}.',
    ],
  },
  decisions: [
    'Nos quedamos con {t} y dejamos {u}, por {p}.',
    'Prefiero no cambiar {t}: pesa más {p}.',
    'Entonces {t}; contra {u} está {p}.',
    'La elección es {t} y no {u}, vista la cuestión de {p}.',
  ],
  open: [
    'Queda por ver si {t} tuvo de verdad {n}.',
    'Nadie ha mirado aún {n} en {t}.',
    'Falta {t}, donde {n} sigue sin explicación.',
    'Sin comprobar: {n} en {t}.',
  ],
  outcomes: [
    'Listo: {t} queda en {n}.',
    'Con esto {t} está resuelto, resultado {n}.',
    '{t} vuelve a funcionar, {n} la última vez.',
    'Terminado {t}; valor final {n}.',
  ],
  plans: [
    'Comparar {t} con el año pasado',
    'Redactar el apartado de {t}',
    'Hablar con el dueño de {t}',
    'Repetir la prueba de {t}',
  ],
  announcements: [
    'Voy a mirar {u}.',
    'Ahora abro {u}.',
    'Primero reviso {u} y luego sigo.',
    'Paso a {u}.',
    'Un vistazo a {u} para ver cómo encaja.',
    'Busco {u}.',
  ],
  small: ['vale, sigue', 'gracias, continúa', 'suena bien', 'por mí bien', 'sí, por favor', 'genial'],
  prose: [
    'Los alrededores de {u} se han descrito muchas veces, entre otros por un viajero con {n}.',
    '{u} es una de varias entradas parecidas de la lista.',
    'Se ruega a los visitantes de {u} que usen la entrada lateral.',
    'Un resumen reciente cita {u} de pasada, con {n}.',
    'Condiciones de uso y contacto en la página de {u}.',
    'La tabla repite lo dicho sobre {u} en ediciones anteriores.',
    'Esta sección necesita más referencias.',
    'Se conocen casos parecidos en {u} y sus alrededores.',
  ],
};
