// The blocks of ECP5 that Yosys has no models of, as far as netlists of openmxu use them. What they do not cover stops the
// simulation.

// Memory of 1024 words of 18 bits, each two bytes of 9 bits. Port A writes and reads, port B as well; with 36 bits, port A
// writes and port B reads a pair of words. A word that one port writes while the other one reads it is read inverted: in
// hardware it is anything, and nobody may depend on it.
module DP16KD(
    input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2,
    DIA1, DIA0,
    input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
    input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2,
    DOA1, DOA0,
    input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2,
    DIB1, DIB0,
    input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
    input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
    DOB1, DOB0
);
    parameter DATA_WIDTH_A = 18;
    parameter REGMODE_A = "NOREG";
    parameter CSDECODE_A = "0b000";
    parameter WRITEMODE_A = "NORMAL";
    parameter CLKAMUX = "CLKA";
    parameter DATA_WIDTH_B = 18;
    parameter REGMODE_B = "NOREG";
    parameter CSDECODE_B = "0b000";
    parameter WRITEMODE_B = "NORMAL";
    parameter CLKBMUX = "CLKB";
    parameter RESETMODE = "SYNC";
    parameter ASYNC_RESET_RELEASE = "SYNC";
    parameter GSR = "ENABLED";
    parameter INIT_DATA = "STATIC";
    parameter [319:0] INITVAL_00 = 320'd0;
    parameter [319:0] INITVAL_01 = 320'd0;
    parameter [319:0] INITVAL_02 = 320'd0;
    parameter [319:0] INITVAL_03 = 320'd0;
    parameter [319:0] INITVAL_04 = 320'd0;
    parameter [319:0] INITVAL_05 = 320'd0;
    parameter [319:0] INITVAL_06 = 320'd0;
    parameter [319:0] INITVAL_07 = 320'd0;
    parameter [319:0] INITVAL_08 = 320'd0;
    parameter [319:0] INITVAL_09 = 320'd0;
    parameter [319:0] INITVAL_0A = 320'd0;
    parameter [319:0] INITVAL_0B = 320'd0;
    parameter [319:0] INITVAL_0C = 320'd0;
    parameter [319:0] INITVAL_0D = 320'd0;
    parameter [319:0] INITVAL_0E = 320'd0;
    parameter [319:0] INITVAL_0F = 320'd0;
    parameter [319:0] INITVAL_10 = 320'd0;
    parameter [319:0] INITVAL_11 = 320'd0;
    parameter [319:0] INITVAL_12 = 320'd0;
    parameter [319:0] INITVAL_13 = 320'd0;
    parameter [319:0] INITVAL_14 = 320'd0;
    parameter [319:0] INITVAL_15 = 320'd0;
    parameter [319:0] INITVAL_16 = 320'd0;
    parameter [319:0] INITVAL_17 = 320'd0;
    parameter [319:0] INITVAL_18 = 320'd0;
    parameter [319:0] INITVAL_19 = 320'd0;
    parameter [319:0] INITVAL_1A = 320'd0;
    parameter [319:0] INITVAL_1B = 320'd0;
    parameter [319:0] INITVAL_1C = 320'd0;
    parameter [319:0] INITVAL_1D = 320'd0;
    parameter [319:0] INITVAL_1E = 320'd0;
    parameter [319:0] INITVAL_1F = 320'd0;
    parameter [319:0] INITVAL_20 = 320'd0;
    parameter [319:0] INITVAL_21 = 320'd0;
    parameter [319:0] INITVAL_22 = 320'd0;
    parameter [319:0] INITVAL_23 = 320'd0;
    parameter [319:0] INITVAL_24 = 320'd0;
    parameter [319:0] INITVAL_25 = 320'd0;
    parameter [319:0] INITVAL_26 = 320'd0;
    parameter [319:0] INITVAL_27 = 320'd0;
    parameter [319:0] INITVAL_28 = 320'd0;
    parameter [319:0] INITVAL_29 = 320'd0;
    parameter [319:0] INITVAL_2A = 320'd0;
    parameter [319:0] INITVAL_2B = 320'd0;
    parameter [319:0] INITVAL_2C = 320'd0;
    parameter [319:0] INITVAL_2D = 320'd0;
    parameter [319:0] INITVAL_2E = 320'd0;
    parameter [319:0] INITVAL_2F = 320'd0;
    parameter [319:0] INITVAL_30 = 320'd0;
    parameter [319:0] INITVAL_31 = 320'd0;
    parameter [319:0] INITVAL_32 = 320'd0;
    parameter [319:0] INITVAL_33 = 320'd0;
    parameter [319:0] INITVAL_34 = 320'd0;
    parameter [319:0] INITVAL_35 = 320'd0;
    parameter [319:0] INITVAL_36 = 320'd0;
    parameter [319:0] INITVAL_37 = 320'd0;
    parameter [319:0] INITVAL_38 = 320'd0;
    parameter [319:0] INITVAL_39 = 320'd0;
    parameter [319:0] INITVAL_3A = 320'd0;
    parameter [319:0] INITVAL_3B = 320'd0;
    parameter [319:0] INITVAL_3C = 320'd0;
    parameter [319:0] INITVAL_3D = 320'd0;
    parameter [319:0] INITVAL_3E = 320'd0;
    parameter [319:0] INITVAL_3F = 320'd0;
    localparam [64*320-1:0] INITVAL = {
        INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38,
        INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30,
        INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28,
        INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20,
        INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
        INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10,
        INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
        INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00
    };

    reg [17:0] words [0:1023];
    reg [17:0] out_a, out_b, kept_a, kept_b;
    integer index;
    wire [17:0] in_a = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4,
    DIA3, DIA2, DIA1, DIA0};
    wire [13:0] at_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
    assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2,
    DOA1, DOA0} = REGMODE_A == "OUTREG" ? kept_a : out_a;
    wire [17:0] in_b = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4,
    DIB3, DIB2, DIB1, DIB0};
    wire [13:0] at_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
    DOB1, DOB0} = REGMODE_B == "OUTREG" ? kept_b : out_b;

    initial begin
        for (index = 0; index < 1024; index = index + 1) words[index] = INITVAL[20*index +: 18];
        out_a = 0;
        out_b = 0;
        kept_a = 0;
        kept_b = 0;
        if (CLKAMUX != "CLKA" || CLKBMUX != "CLKB") $fatal;
        if (DATA_WIDTH_A == 36 && REGMODE_A != REGMODE_B) $fatal;
        if (DATA_WIDTH_A == 36 ? DATA_WIDTH_B != 36 : DATA_WIDTH_B > 18) $fatal;
    end

    // Bits of a word that a port with this width and address has, and where the lowest of them is.
    function [17:0] mask(input integer width, input [13:0] address);
        case (width)
            1: mask = 18'd1 << low(width, address);
            2: mask = 18'd3 << low(width, address);
            4: mask = 18'd15 << low(width, address);
            9: mask = 18'h1ff << low(width, address);
            default: mask = {{9{address[1]}}, {9{address[0]}}};  // bytes are enabled by the lowest bits
        endcase
    endfunction

    function integer low(input integer width, input [13:0] address);
        low = width == 18 ? 0 : (address[3] ? 9 : 0) + (width == 9 ? 0 : {29'd0, address[2:0]});
    endfunction

    wire [17:0] mask_a = mask(DATA_WIDTH_A, at_a);
    wire [17:0] mask_b = mask(DATA_WIDTH_B, at_b);
    wire [17:0] new_a = words[at_a[13:4]] & ~mask_a | in_a << low(DATA_WIDTH_A, at_a) & mask_a;
    wire [17:0] new_b = words[at_b[13:4]] & ~mask_b | in_b << low(DATA_WIDTH_B, at_b) & mask_b;
    wire writes_a = CEA & WEA;
    wire writes_b = CEB & WEB;
    wire collides = at_a[13:4] == at_b[13:4];
    wire [17:0] pair_mask_low = {{9{at_a[1]}}, {9{at_a[0]}}};
    wire [17:0] pair_mask_high = {{9{at_a[3]}}, {9{at_a[2]}}};
    wire pair_collides = writes_a & at_a[13:5] == at_b[13:5];

    always @(posedge CLKA) begin
        if (OCEA) kept_a <= RSTA ? 0 : out_a;
        if (OCEB) kept_b <= RSTB ? 0 : out_b;
    end

    generate
        if (DATA_WIDTH_A == 36) begin
            always @(posedge CLKA) begin
                if (writes_a) begin
                    words[{at_a[13:5], 1'b0}] <= words[{at_a[13:5], 1'b0}] & ~pair_mask_low | in_a & pair_mask_low;
                    words[{at_a[13:5], 1'b1}] <= words[{at_a[13:5], 1'b1}] & ~pair_mask_high | in_b & pair_mask_high;
                end
                if (CEB) begin
                    out_a <= words[{at_b[13:5], 1'b0}] ^ {18{pair_collides & |pair_mask_low}};
                    out_b <= words[{at_b[13:5], 1'b1}] ^ {18{pair_collides & |pair_mask_high}};
                end
                if (RSTB) begin
                    out_a <= 0;
                    out_b <= 0;
                end
            end
        end else begin
            always @(posedge CLKA) begin
                if (writes_a) words[at_a[13:4]] <= new_a;
                if (writes_b) words[at_b[13:4]] <= new_b;
                if (CEA & ~WEA) out_a <= words[at_a[13:4]] >> low(DATA_WIDTH_A, at_a) ^ {18{writes_b & collides}};
                if (CEB & ~WEB) out_b <= words[at_b[13:4]] >> low(DATA_WIDTH_B, at_b) ^ {18{writes_a & collides}};
                if (writes_a & WRITEMODE_A == "READBEFOREWRITE") out_a <= words[at_a[13:4]] >> low(DATA_WIDTH_A, at_a);
                if (writes_b & WRITEMODE_B == "READBEFOREWRITE") out_b <= words[at_b[13:4]] >> low(DATA_WIDTH_B, at_b);
                if (writes_a & WRITEMODE_A == "WRITETHROUGH") out_a <= new_a >> low(DATA_WIDTH_A, at_a);
                if (writes_b & WRITEMODE_B == "WRITETHROUGH") out_b <= new_b >> low(DATA_WIDTH_B, at_b);
                if (RSTA) out_a <= 0;
                if (RSTB) out_b <= 0;
            end
        end
    endgenerate
endmodule

// Product of 18 bits each, with a register behind each input, one in the middle and one at the end, or without.
module MULT18X18D(
    input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0, B17, B16, B15, B14, B13,
    B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0, C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6,
    C5, C4, C3, C2, C1, C0,
    input SRIA17, SRIA16, SRIA15, SRIA14, SRIA13, SRIA12, SRIA11, SRIA10, SRIA9, SRIA8, SRIA7, SRIA6, SRIA5, SRIA4,
    SRIA3, SRIA2, SRIA1, SRIA0, SRIB17, SRIB16, SRIB15, SRIB14, SRIB13, SRIB12, SRIB11, SRIB10, SRIB9, SRIB8, SRIB7,
    SRIB6, SRIB5, SRIB4, SRIB3, SRIB2, SRIB1, SRIB0,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK3, CLK2, CLK1, CLK0, CE3, CE2, CE1, CE0, RST3, RST2, RST1, RST0,
    output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15,
    P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0, SIGNEDP
);
    parameter REG_INPUTA_CLK = "NONE";
    parameter REG_INPUTA_CE = "CE0";
    parameter REG_INPUTA_RST = "RST0";
    parameter REG_INPUTB_CLK = "NONE";
    parameter REG_INPUTB_CE = "CE0";
    parameter REG_INPUTB_RST = "RST0";
    parameter REG_INPUTC_CLK = "NONE";
    parameter REG_INPUTC_CE = "CE0";
    parameter REG_INPUTC_RST = "RST0";
    parameter REG_PIPELINE_CLK = "NONE";
    parameter REG_PIPELINE_CE = "CE0";
    parameter REG_PIPELINE_RST = "RST0";
    parameter REG_OUTPUT_CLK = "NONE";
    parameter REG_OUTPUT_CE = "CE0";
    parameter REG_OUTPUT_RST = "RST0";
    parameter CLK0_DIV = "ENABLED";
    parameter CLK1_DIV = "ENABLED";
    parameter CLK2_DIV = "ENABLED";
    parameter CLK3_DIV = "ENABLED";
    parameter HIGHSPEED_CLK = "NONE";
    parameter GSR = "ENABLED";
    parameter CAS_MATCH_REG = "FALSE";
    parameter SOURCEB_MODE = "B_SHIFT";
    parameter MULT_BYPASS = "DISABLED";
    parameter RESETMODE = "SYNC";

    wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
    wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
    wire [3:0] enables = {CE3, CE2, CE1, CE0};
    wire [3:0] resets = {RST3, RST2, RST1, RST0};

    function integer number(input [31:0] name);  // the last digit
        number = {30'd0, name[1:0]};
    endfunction

    reg [18:0] held_a, held_b;
    reg [35:0] held_middle, held_product;
    wire [18:0] wide_a = {SIGNEDA & a[17], a};
    wire [18:0] wide_b = {SIGNEDB & b[17], b};
    wire signed [18:0] factor_a = REG_INPUTA_CLK == "NONE" ? wide_a : held_a;
    wire signed [18:0] factor_b = REG_INPUTB_CLK == "NONE" ? wide_b : held_b;
    wire signed [37:0] exact = factor_a * factor_b;
    wire [35:0] middle = REG_PIPELINE_CLK == "NONE" ? exact[35:0] : held_middle;
    wire [35:0] product = REG_OUTPUT_CLK == "NONE" ? middle : held_product;
    assign SIGNEDP = SIGNEDA | SIGNEDB;
    assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15,
    P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = product;

    initial begin
        {held_a, held_b, held_middle, held_product} = 0;
        if (SOURCEB_MODE != "B_SHIFT" || MULT_BYPASS != "DISABLED" || SOURCEA || SOURCEB) $fatal;
    end

    always @(posedge CLK0) begin
        if (enables[number(REG_INPUTA_CE)]) held_a <= wide_a;
        if (resets[number(REG_INPUTA_RST)]) held_a <= 0;
        if (enables[number(REG_INPUTB_CE)]) held_b <= wide_b;
        if (resets[number(REG_INPUTB_RST)]) held_b <= 0;
        if (enables[number(REG_PIPELINE_CE)]) held_middle <= exact[35:0];
        if (resets[number(REG_PIPELINE_RST)]) held_middle <= 0;
        if (enables[number(REG_OUTPUT_CE)]) held_product <= middle;
        if (resets[number(REG_OUTPUT_RST)]) held_product <= 0;
    end
endmodule
